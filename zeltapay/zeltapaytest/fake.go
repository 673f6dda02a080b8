package zeltapaytest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
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

	// BareSignature sends a Zeltapay-Signature of hexadecimal digits only, as one page reads it; t=…, v1=… by default.
	BareSignature bool

	// SignOnce signs an event at its first attempt, and repeats that signature in all others. By default each attempt
	// is signed anew, with its own time, which is assumed: Zelta Pay does not say it, and a single signature would have
	// its late retries refused.
	SignOnce bool

	// SigningTime returns the time to sign with; [Fake.Now] by default. Make it time.Now for a receiver whose clock
	// cannot be set, such as another process: it verifies at any time of the fake's clock.
	SigningTime func() time.Time

	// FirstAttempt is the Zeltapay-Delivery-Attempt of the first attempt; 1 by default. Zelta Pay does not say whether
	// it is 0 or 1, nor the number of a replay: here the numbers go on.
	FirstAttempt int

	// Delays are the waits before the retries, one for each; [TableDelays] by default. The pages differ: see
	// [SampleDelays] and [DayDelays].
	Delays []time.Duration

	// Jitter returns the factor of a delay; nil for 1, so that every run is the same. Zelta Pay's is random,
	// from 0.5 to 1.5 in its table, from 1 to 2 in its sample.
	Jitter func() float64

	// Lifetime is the time after the first attempt in which an event may be retried; 24 hours by default. It goes to the
	// dead-letter queue then, with retries left.
	Lifetime time.Duration

	// Judge returns the meaning of an answer for its event; the function [Judge] by default. See [JudgeListed].
	Judge func(status int) Verdict

	// Timeout is the time that a receiver has, in real time (in a synctest bubble: in the bubble's); 10 seconds by
	// default, Zelta Pay says no number. In the fake's time every attempt takes none. For a receiver that never
	// answers, make it a millisecond.
	Timeout time.Duration

	// Observe, if not nil, is called with each entry of the timeline, just after it happened; in the order of the
	// timeline, as long as one goroutine at a time uses the fake. It may call the fake, but not move its clock.
	Observe func(Entry)

	mover    fixture.Mover // of the clock
	ctx      context.Context
	close    context.CancelCauseFunc
	client   *http.Client
	inFlight sync.WaitGroup // requests in a Handler, waited for or not
	faults   fixture.Faults[Fault]

	timeline fixture.Timeline[Entry] // its lock is that of all below
	passed   time.Duration           // since Start
	webhooks []*Webhook
	emitted  map[string]bool // by id
	pending  []*pending      // in the order in which they were emitted
}

// New makes a fake without webhooks.
func New() *Fake {
	f := &Fake{
		Start:        time.Now(),
		FirstAttempt: 1,
		Delays:       TableDelays(),
		Lifetime:     24 * time.Hour,
		Judge:        Judge,
		Timeout:      10 * time.Second,
		client:       newClient(),
		emitted:      make(map[string]bool),
	}
	f.ctx, f.close = context.WithCancelCause(context.Background())
	return f
}

func newClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // no connection outlives its request
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close ends deliveries in flight, and waits for Handlers that still run, at most for Timeout. Nothing of the fake is
// left then, and nothing happens any more.
func (f *Fake) Close() {
	f.timeline.Lock() // see begin
	f.close(errors.New("the fake was closed"))
	f.timeline.Unlock()
	fixture.Await(&f.inFlight, f.Timeout)
}

// Now is the fake's time. Give it to the receiver, which refuses signatures of another time than its own:
//
//	events.Verifier.Now = fake.Now
func (f *Fake) Now() time.Time {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	return f.now()
}

func (f *Fake) now() time.Time { return f.Start.Add(f.passed) }

// change changes the fake's state, and then calls Observe with the new entries.
func (f *Fake) change(do func()) { f.timeline.Change(do, f.Observe) }

// withTimeout bounds one request.
func (f *Fake) withTimeout() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(f.ctx, f.Timeout, fmt.Errorf("no answer within %s", f.Timeout))
}

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
	f.timeline.Lock()
	defer f.timeline.Unlock()
	f.webhooks = append(f.webhooks, &w)
}

// Timeline is all that happened so far, in its order.
func (f *Fake) Timeline() []Entry { return f.timeline.Entries() }

// record completes an entry.
func (f *Fake) record(p *pending, e Entry) {
	e.At, e.URL, e.EventID, e.EventType, e.Attempt = f.now(), p.webhook.URL, p.id, p.kind, p.attempts
	f.timeline.Record(e)
}

// Inject makes the next attempts go wrong, one fault each, whichever event they are of. The fault 0 leaves an attempt
// as it is:
//
//	fake.Inject(0, zeltapaytest.LostAnswer) // the second attempt
//
// Faults that are not used up wait for later attempts.
func (f *Fake) Inject(faults ...Fault) { f.faults.Add(faults...) }

func (f *Fake) remove(p *pending) {
	f.pending = slices.DeleteFunc(f.pending, func(q *pending) bool { return q == p })
}
