package asaastest

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/fixture"
)

// Fake is an Asaas of the test's own: its API for webhooks, and the queues that
// deliver events by its rules. Its clock moves only when [Fake.Advance] moves
// it, so that days pass in milliseconds and every run is the same.
//
// Make one with [New] or [NewServer], set the fields before the first use, and
// Close it at the end. The methods may be called from several goroutines, and
// from a receiver while it handles an event; the clock has one mover at a time.
type Fake struct {
	// URL is the address of the API, "http://127.0.0.1:40321"; its paths begin
	// with /v3. It is empty unless the fake was made by NewServer.
	URL string

	// APIKey is the key that the API takes; "$aact_hmlg_fake" by default. Its
	// beginning makes the fake a sandbox, $aact_hmlg_, or production,
	// $aact_prod_: a key of the other one is refused as invalid_environment.
	APIKey string

	// WalletID is the account's wallet, which splits of sub-accounts' charges name.
	WalletID string

	// Limit bounds the API's requests of each account; 25,000 in 12 hours by default, as Asaas
	// publishes. It counts in the fake's time.
	Limit RateLimit

	// NoPixAutomatic makes the account one without Pix Automático: the API refuses a webhook that
	// is to get a PIX_AUTOMATIC_* type, as a whole.
	NoPixAutomatic bool

	// Timeout is the time that a receiver has, in real time (in a synctest
	// bubble: in the bubble's); 10 seconds by default, as Asaas waits. In the
	// fake's time every attempt takes none. For a receiver that never answers,
	// make it a millisecond.
	Timeout time.Duration

	// Observe, if not nil, is called with each entry of the timeline, just after
	// it happened; in the order of the timeline, as long as one goroutine at a
	// time uses the fake. It may call the fake, but not move its clock.
	Observe func(Entry)

	core      *fixture.Core[Entry] // its lock is that of all below
	start     time.Time
	server    *httptest.Server // nil but for NewServer
	routes    *http.ServeMux
	faults    fixture.Faults[Fault]
	apiFaults fixture.Faults[APIFault]
	webhooks  []*webhook
	added     int             // webhooks, ever
	queued    int             // events, ever
	emitted   map[string]bool // by id
	own       *account        // not a sub-account
	subs      []*account
}

// New makes a fake without a socket, also for a bubble of testing/synctest: it
// is an [http.Handler], [Fake.Transport] reaches it, and it delivers to a webhook's
// Handler. Its clock begins at 2026-08-08 23:45:13 UTC.
func New() *Fake {
	f := &Fake{
		APIKey:   "$aact_hmlg_fake",
		Limit:    RateLimit{Requests: 25000, Window: 12 * time.Hour},
		Timeout:  10 * time.Second,
		start:    time.Date(2026, 8, 8, 23, 45, 13, 0, time.UTC), // as the events of Event, 20:45:13 in Brasília
		emitted:  make(map[string]bool),
		own:      newAccount(Account{ID: accountID}),
		WalletID: walletID,
	}
	f.own.isSub = false
	f.core = fixture.NewCore("asaastest", asaas.OfficialAddresses()[0].Addr().String(),
		fixture.Settings[Entry]{Start: &f.start, Timeout: &f.Timeout, Observe: &f.Observe})
	f.routes = f.newRoutes()
	return f
}

// NewServer is [New] with the API listening on a port of this machine, see URL.
// It panics if there is no port to have.
func NewServer() *Fake {
	f := New()
	f.server = httptest.NewUnstartedServer(f)
	f.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.server.Config.SetKeepAlivesEnabled(false) // else net/http's client hides an APIReset by trying again
	f.server.Start()
	f.URL = f.server.URL
	return f
}

// Close ends deliveries and API requests in flight, and waits for Handlers that
// still run, at most for Timeout. Nothing of the fake is left then.
func (f *Fake) Close() {
	if f.server != nil {
		f.server.CloseClientConnections()
		f.server.Close()
	}
	f.core.Close()
}

// Now is the fake's time.
func (f *Fake) Now() time.Time { return f.core.Now() }

// Timeline is all that happened so far, in its order.
func (f *Fake) Timeline() []Entry { return f.core.Entries() }

// Emit makes events happen, one per body: each is queued for the enabled
// webhooks that subscribe to its type, in the order of the bodies. [Fake.Settle]
// and [Fake.Advance] deliver them. The API shows the charge of an event as the newest
// of its events has it. An event that was emitted before is sent again, as a person can
// have it in Asaas's web interface. The webhooks are those of the sub-account that the body's account.id names, or
// of the fake's own account.
//
// It panics for a body that is no event.
func (f *Fake) Emit(bodies ...[]byte) {
	var events []idem.Event
	for _, body := range bodies {
		events = append(events, newEvent(body))
	}
	f.core.Change(func() {
		for _, e := range events {
			of := f.accountOf(accountIn(e))
			if !f.emitted[e.ID] {
				f.emitted[e.ID] = true
				of.learn(e)
			}
			f.enqueue(of, e)
		}
	})
}

// Inject makes the next attempts go wrong, one fault each, whichever webhook they
// are of. The fault 0 leaves an attempt as it is:
//
//	fake.Inject(0, asaastest.LostAnswer) // the second attempt
//
// Faults that are not used up wait for later attempts.
func (f *Fake) Inject(faults ...Fault) { f.faults.Add(faults...) }

// InjectAPI makes the next requests to the API go wrong, one fault each. A nil
// fault leaves a request as it is.
func (f *Fake) InjectAPI(faults ...APIFault) { f.apiFaults.Add(faults...) }

// Webhook is the configuration of a webhook, and the state of its queue.
type Webhook struct {
	Name     string // "fake" by default
	URL      string // of the receiver; for a Handler the URL that its requests show
	Email    string // "fake@example.com" by default
	Token    string // sent with every event; none if empty, as old webhooks may do
	SendType SendType

	// Handler, if not nil, receives the events in this process, without a
	// socket, and so also in a synctest bubble. Its requests come from an address
	// of Asaas's; also those of asaas.Recover with [Fake.Client].
	Handler http.Handler

	// Events are the event types that it gets; all by default, also those that
	// this module does not know.
	Events []asaas.EventType

	// APIVersion is 3 by default. With 2 the body is a form and there is no
	// token, like those of old accounts.
	APIVersion int

	// Account is the ID of the sub-account that it belongs to. Default: "", the fake's own account.
	Account string

	Disabled    bool // no event is queued; those in the queue stay in it
	Interrupted bool // paused: events are queued, not sent

	// Set by the fake.
	ID        string
	Penalized int // failures in a row; the API's penalizedRequestsCount
	Pending   int // events in the queue
}

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

// maxWebhooks is the number of webhooks that an account can have.
const maxWebhooks = 10

// AddWebhook adds a webhook, like a person in Asaas's web interface, and returns
// its id. It panics without a receiver, and for the eleventh webhook. Only the
// API has rules for the token.
func (f *Fake) AddWebhook(w Webhook) (id string) {
	if w.URL == "" && w.Handler == nil {
		panic("asaastest: a webhook needs a URL or a Handler")
	}
	f.core.Change(func() {
		of := f.mustFindAccount(w.Account)
		if len(f.webhooksOf(of)) >= maxWebhooks {
			panic(fmt.Sprintf("asaastest: an account has at most %d webhooks", maxWebhooks))
		}
		id = f.add(of, w).ID
	})
	return id
}

// webhooksOf returns the webhooks of an account.
func (f *Fake) webhooksOf(a *account) (out []*webhook) {
	for _, w := range f.webhooks {
		if w.of == a {
			out = append(out, w)
		}
	}
	return out
}

// add completes a webhook with the defaults.
func (f *Fake) add(of *account, c Webhook) *webhook {
	f.added++
	c.ID = fmt.Sprintf("00000000-0000-4000-8000-%012d", f.added)
	c.Events = slices.Clone(c.Events)
	c.Name = cmp.Or(c.Name, "fake")
	c.URL = cmp.Or(c.URL, fmt.Sprintf("http://receiver%d.example/webhooks/asaas", f.added)) // one for each Handler
	c.Email = cmp.Or(c.Email, "fake@example.com")
	c.SendType = cmp.Or(c.SendType, Sequentially)
	c.APIVersion = cmp.Or(c.APIVersion, 3)
	if c.Account = ""; of.isSub {
		c.Account = of.ID
	}
	w := &webhook{Webhook: c, of: of}
	f.webhooks = append(f.webhooks, w)
	return w
}

// Webhook returns a webhook as it is now. It panics for an id that there is
// not.
func (f *Fake) Webhook(id string) Webhook {
	f.core.Lock()
	defer f.core.Unlock()
	w := f.mustFind(id)
	out := w.Webhook
	out.Events = slices.Clone(w.Events)
	out.Penalized, out.Pending = w.penalized(), len(w.queue)
	return out
}

// Resume reactivates a paused queue, like a person in Asaas's web interface:
// all events in it are due, in the order in which they happened, and the count
// of failures begins anew. Settle delivers them.
func (f *Fake) Resume(webhookID string) {
	f.core.Change(func() { f.setInterrupted(f.mustFind(webhookID), false) })
}

// RemoveBackoff removes the penalty, like the API's removeBackoff: the events that wait
// are due, and the count of failures begins anew. It does not resume a paused
// queue.
func (f *Fake) RemoveBackoff(webhookID string) {
	f.core.Change(func() { f.removeBackoff(f.mustFind(webhookID)) })
}

func (f *Fake) find(id string) *webhook {
	i := slices.IndexFunc(f.webhooks, func(w *webhook) bool { return w.ID == id })
	if i < 0 {
		return nil
	}
	return f.webhooks[i]
}

func (f *Fake) mustFind(id string) *webhook {
	w := f.find(id)
	if w == nil {
		panic(fmt.Sprintf("asaastest: there is no webhook %q", id))
	}
	return w
}
