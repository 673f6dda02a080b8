package asaastest

import (
	"net/http"

	"github.com/paghooks/paghooks/asaas"
)

// SendType is the order in which a webhook's events are sent.
type SendType string

// The send types.
const (
	// Sequentially sends events in their order: each waits for the one before it.
	Sequentially SendType = "SEQUENTIALLY"
	// NonSequentially sends several events at once, and does not wait for those
	// that failed.
	NonSequentially SendType = "NON_SEQUENTIALLY"
)

// Webhook is the configuration of a webhook, and the state of its queue.
type Webhook struct {
	Name     string // "fake" by default
	URL      string // of the receiver; for a Handler the URL that its requests show
	Email    string // "fake@example.com" by default
	Token    string // sent with every event; none if empty, as old webhooks may do
	SendType SendType

	// Handler, if not nil, receives the events in this process, without a
	// socket, and so also in a synctest bubble. Its requests come over HTTP all
	// the same, from an address of Asaas's; also those of
	// asaas.Recover with [Fake.Client].
	Handler http.Handler

	// Events are the event types that it gets; all by default, also those that
	// this module does not know.
	Events []asaas.EventType

	// APIVersion is 3 by default. With 2 the body is a form and there is no
	// token, like those of old accounts.
	APIVersion int

	Disabled    bool // no event is queued; those in the queue stay in it
	Interrupted bool // paused: events are queued, not sent

	// Set by the fake.
	ID        string
	Penalized int // failures in a row; the API's penalizedRequestsCount
	Pending   int // events in the queue
}
