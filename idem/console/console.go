package console

import (
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/gauge"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/idem/outbox"
	"github.com/paghooks/paghooks/internal/lang"
)

// Access holds the rights of a user. The zero value allows nothing.
type Access struct {
	See    bool // all pages, without bodies; Reveal and Act have no effect without it
	Reveal bool // bodies; each look is recorded in the audit trail
	Act    bool // replay, requeue, discard, dry run, release a queue; each is recorded
}

// Handler serves the page. Make it with [New], and call [Handler.Close] at the end.
//
// The exported fields are settings: change them before the first request.
type Handler struct {
	// Access returns the name of the user that makes a request, for the audit trail,
	// and their rights. Without a name they may only see. Default: nil, every
	// request is answered 403.
	Access func(*http.Request) (user string, a Access)

	// Redact returns the part of a body that is shown, unless the user asks for the whole
	// body. source is the name of the event's source. Default: [Mask].
	Redact func(source string, body []byte) []byte

	// Queues are the providers' delivery queues, by the name of the source of the
	// events that they hold. Default: none.
	Queues map[string]gauge.Queues

	// Links lead to the provider's page of an entity, by how the entity's id begins. They are
	// addresses of http or https, in which {id} stands for the id:
	//
	//	page.Links = map[string]string{"pay_": "https://erp.shop.example/charges/{id}"}
	//
	// Asaas documents no stable address of a charge in its dashboard, so that there is none by
	// itself: give that of your account, or of your own back office. Default: none.
	Links map[string]string

	// Fields are the names of the fields of bodies that events are found by, by the source, such as
	// asaas.SearchFields. They must not be personal. Default: none.
	Fields map[string][]string

	// Logger gets the errors of pages and of actions in the background.
	// Default: slog.Default().
	Logger *slog.Logger

	sources   []*source
	protected *http.CrossOriginProtection
	moment    time.Duration // how long the overview waits for counts
	running   *running
}

var _ http.Handler = (*Handler)(nil)

// source is a receiver, and its last seen state.
type source struct {
	name     string
	receiver idem.Receiver
	events   *operator.Operator // without a name: it reads
	workers  bool
	counts   latest[operator.State]
	held     latest[[]gauge.Queue]
	tried    tried
}

// New returns a page for the events of receivers. Of a processor and an inbox of the
// same source it uses the inbox, which has workers.
func New(receivers ...idem.Receiver) *Handler {
	h := &Handler{
		Redact:    func(_ string, body []byte) []byte { return Mask(body) },
		Logger:    slog.Default(),
		protected: http.NewCrossOriginProtection(),
		moment:    100 * time.Millisecond,
		running:   newRunning(),
	}
	for _, r := range receivers {
		workers := hasWorkers(r)
		events := operator.New(r, "")
		s := &source{name: events.SourceName(), receiver: r, events: events, workers: workers}
		i := slices.IndexFunc(h.sources, func(other *source) bool { return other.name == s.name })
		switch {
		case i < 0:
			h.sources = append(h.sources, s)
		case workers:
			h.sources[i] = s
		}
	}
	return h
}

// hasWorkers reports whether events of a receiver can be requeued.
func hasWorkers(r idem.Receiver) bool {
	switch r.(type) {
	case *idem.Inbox, *outbox.Outbox:
		return true
	}
	return false
}

// Close ends the actions that run in the background, and returns when they have
// ended. A replay ends after the event that is being processed; its record says how
// far it came.
func (h *Handler) Close() { h.running.close() }

// visit is one request.
type visit struct {
	*Handler
	w      http.ResponseWriter
	r      *http.Request
	user   string
	access Access
	lang   lang.Lang
	source *source // that the request names, or the first
	live   int     // seconds after which the page refreshes itself, if it is not as often as others of its kind
}

// operator acts for the user.
func (v *visit) operator() *operator.Operator { return operator.New(v.source.receiver, v.user) }

// redirect leads to a page, by GET. The address is relative, which http.Redirect
// would make absolute without knowing the prefix that a proxy has cut off.
func (v *visit) redirect(to string) {
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(http.StatusSeeOther)
}
