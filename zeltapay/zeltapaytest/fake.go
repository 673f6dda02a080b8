package zeltapaytest

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/paghooks/paghooks/internal/fixture"
	"github.com/paghooks/paghooks/zeltapay"
)

// Fake is a Zelta Pay of the test's own: it delivers events to webhooks by Zelta Pay's rules for signatures, retries
// and the dead-letter queue. Its clock moves only when [Fake.Advance] moves it, so that days pass in milliseconds and
// every run is the same.
//
// Make one with [New], set the fields before the first use, and Close it at the end. The methods may be called from
// several goroutines, and from a receiver while it handles an event; the clock has one mover at a time.
//
// The rules are those of https://docs-pay.zelta.dev/guides/webhooks/delivery. Where Zelta Pay's pages contradict one
// another there is a field to choose; where they say nothing, the comments name the assumption.
type Fake struct {
	// Start is when the clock begins; when New was called by default.
	Start time.Time

	// Format is the string that is signed, of the two that the pages show; [zeltapay.FormatPrefixed] by default.
	Format zeltapay.Format

	// SigningTime returns the time to sign an attempt with; [Fake.Now] by default. Make it time.Now for a receiver whose
	// clock cannot be set, such as another process: it verifies at any time of the fake's clock.
	SigningTime func() time.Time

	// Delays are the waits before the retries, one for each; by default those of Zelta Pay's table, 5, 10, 20, 40, 80 and
	// 160 seconds. They are over after 5 minutes and 15 seconds, though the same page says that retries go on over 24
	// hours. It also says "6 attempts", and elsewhere "6 retry attempts" after the first; its sample code begins with 10
	// seconds, and multiplies each wait by a random factor.
	Delays []time.Duration

	// Timeout is the time that a receiver has, in real time (in a synctest bubble: in the bubble's); 10 seconds by
	// default, Zelta Pay says no number. In the fake's time every attempt takes none. For a receiver that never
	// answers, make it a millisecond.
	Timeout time.Duration

	// Observe, if not nil, is called with each entry of the timeline, just after it happened; in the order of the
	// timeline, as long as one goroutine at a time uses the fake. It may call the fake, but not move its clock.
	Observe func(Entry)

	core     *fixture.Core[Entry] // its lock is that of all below
	faults   fixture.Faults[Fault]
	webhooks []*Webhook
	pending  []*pending      // in the order in which they were emitted
	links    []zeltapay.Link // that were paid, the newest last
}

// New makes a fake without webhooks.
func New() *Fake {
	f := &Fake{
		Start:   time.Now(),
		Timeout: 10 * time.Second,
	}
	for _, seconds := range []time.Duration{5, 10, 20, 40, 80, 160} {
		f.Delays = append(f.Delays, seconds*time.Second)
	}
	documentation := "192.0.2.1" // RFC 5737
	f.core = fixture.NewCore("zeltapaytest", documentation, fixture.Settings[Entry]{Start: &f.Start, Timeout: &f.Timeout, Observe: &f.Observe})
	return f
}

// Close ends deliveries in flight, and waits for Handlers that still run, at most for Timeout. Nothing of the fake is
// left then, and nothing happens any more.
func (f *Fake) Close() { f.core.Close() }

// Now is the fake's time. Give it to the receiver, which refuses signatures of another time than its own:
//
//	events.Now = fake.Now
func (f *Fake) Now() time.Time { return f.core.Now() }

// AddWebhook adds a webhook, like a person in Zelta Pay's dashboard. It panics without a receiver, and for a URL that
// is none.
func (f *Fake) AddWebhook(w Webhook) {
	if w.URL == "" && w.Handler == nil {
		panic("zeltapaytest: a webhook needs a URL or a Handler")
	}
	if w.URL == "" {
		w.URL = "http://receiver.example/webhooks/zeltapay"
	}
	if to, err := url.Parse(w.URL); err != nil || to.Host == "" {
		panic(fmt.Sprintf("zeltapaytest: %q is not the URL of a receiver: it needs http:// and a host", w.URL))
	}
	w.Events = slices.Clone(w.Events)
	f.core.Lock()
	defer f.core.Unlock()
	f.webhooks = append(f.webhooks, &w)
}

// Timeline is all that happened so far, in its order.
func (f *Fake) Timeline() []Entry { return f.core.Entries() }

// Inject makes the next attempts go wrong, one fault each, whichever event they are of. The fault 0 leaves an attempt
// as it is:
//
//	fake.Inject(0, zeltapaytest.LostAnswer) // the second attempt
//
// Faults that are not used up wait for later attempts.
func (f *Fake) Inject(faults ...Fault) { f.faults.Add(faults...) }

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

// Emit makes events happen, one per body: each is due at once for the webhooks that subscribe to its type.
// [Fake.Settle] and [Fake.Advance] deliver them.
//
// A body without an eventId gets one in its header.
func (f *Fake) Emit(bodies ...[]byte) {
	f.core.Change(func() {
		for _, body := range bodies {
			f.emit(body)
		}
	})
}

func (f *Fake) emit(body []byte) {
	h := make(http.Header)
	zeltapay.Sign(h, body, "", time.Time{}) // names the event as each delivery will
	id, kind := cmp.Or(h.Get(headerEventID), newID()), zeltapay.EventType(h.Get(headerEventType))
	f.complete(body)
	for _, w := range f.webhooks {
		if w.subscribes(kind) {
			p := &pending{webhook: w, id: id, kind: kind, body: bytes.Clone(body), due: f.core.Time()}
			f.pending = append(f.pending, p)
			f.record(p, Entry{Kind: Queued})
		}
	}
}

// Fault is something that goes wrong with an attempt. Several go together: Concurrent|LostAnswer.
type Fault uint

// The faults of an attempt. A receiver's answer counts, unless it says otherwise here.
const (
	// Duplicate delivers the event a second time after the answer. The first answer counts.
	Duplicate Fault = 1 << iota
	// Concurrent delivers two copies at the same moment. The answer to the first of them counts.
	Concurrent
	// Swap lets another event that is due at this moment go before this one. The attempt is the other event's then. When
	// no other is due, an event keeps its place.
	Swap
	// LostAnswer throws the receiver's answer away: the receiver is done with the event, and Zelta Pay takes it for a
	// failure.
	LostAnswer
	// SlowBody sends the body byte by byte.
	SlowBody
	// CutBody sends half of the body, and breaks the connection. No answer gets back.
	CutBody
	// WrongSecret signs with a secret that is not the webhook's.
	WrongSecret
	// Stale signs with a time an hour ago.
	Stale
)

func (f Fault) has(other Fault) bool { return f&other != 0 }

// Kind names the subject of an [Entry].
type Kind string

// The kinds of entries.
const (
	// Queued: it happened, and the webhook subscribes to it.
	Queued Kind = "queued"
	// Delivered: an attempt was answered with success, the event is done.
	Delivered Kind = "delivered"
	// Failed: an attempt was not answered with success.
	Failed Kind = "failed"
	// Copied: the second copy that [Concurrent] or [Duplicate] sent was answered. It counts neither as success nor as
	// failure.
	Copied Kind = "copied"
	// DeadLettered: it went to the dead-letter queue.
	DeadLettered Kind = "dead-lettered"
	// Replayed: somebody wants it out of there, and it is due.
	Replayed Kind = "replayed"
	// Deleted: it was in the dead-letter queue for 30 days, and is gone for good.
	Deleted Kind = "deleted"
)

// Entry is one thing that happened to an event of a webhook.
type Entry struct {
	At        time.Time // in the fake's time
	Kind      Kind
	URL       string // of the webhook
	EventID   string // as in Zeltapay-Event-Id
	EventType zeltapay.EventType

	Attempt int       // from 1, as in Zeltapay-Delivery-Attempt; goes on in replays
	Status  int       // of the receiver's answer; 0 without one
	Answer  string    // the answer's body, its first 4 KiB
	Error   string    // why there is no answer, or none that counts
	Fault   Fault     // the fault that the test injected
	Next    time.Time // when Failed: of the next attempt; zero if there is none
	Reason  Reason    // when DeadLettered
}

// String is a line for people: "2026-08-08 23:45:13 failed payment.success evt_1, attempt 1: 503, next in 5s".
func (e Entry) String() string {
	return fixture.Entry{
		At: e.At, Kind: string(e.Kind), EventType: string(e.EventType), EventID: e.EventID,
		Attempt: e.Attempt, Status: e.Status, Error: cmp.Or(e.Error, string(e.Reason)), Next: e.Next,
	}.String()
}
