package zeltapaytest

import (
	"net/http"
	"slices"

	"github.com/paghooks/paghooks/zeltapay"
)

// Webhook holds the settings of a webhook in Zelta Pay's dashboard.
type Webhook struct {
	URL    string // of the receiver; for a Handler the URL that its requests show
	Secret string // signs every event

	// Handler, if not nil, receives the events in this process, without a socket, and so also in a synctest bubble.
	Handler http.Handler

	// Events are the event types that it gets; all by default, also those that this module does not know.
	Events []zeltapay.EventType
}

func (w *Webhook) subscribes(kind zeltapay.EventType) bool {
	return w.Events == nil || slices.Contains(w.Events, kind)
}
