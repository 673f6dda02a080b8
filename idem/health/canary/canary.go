// Package canary delivers an event of its own through the real address, again and again, so
// that a broken deployment is noticed before a customer meets it. See [Canary].
package canary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/inside"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Canary delivers an event of its own to the application's public address, every 30
// seconds, so that a broken deployment is noticed within about a minute, and not by
// the first customer. The delivery has the token or the signature that the provider
// would send, and is a dry run (see [idem.DryRunHeader]): the receiver verifies it, writes
// its record to Postgres and rolls back. That tests DNS, the network, TLS, proxies,
// the secret, and that Postgres can be written to. It runs none of your handlers,
// and stores nothing.
//
// asaas.NewCanary and zeltapay.NewCanary return one. Give it to [idem.Serve], which
// runs it, and to health.New, which reports it:
//
//	canary := asaas.NewCanary("https://shop.example/webhooks/asaas", token)
//	http.Handle("GET /health/webhooks", health.New(inbox, canary))
//	return idem.Serve(ctx, server, inbox, canary)
//
// Each process that runs it makes its own deliveries, which any process behind the
// address may answer. A receiver that takes deliveries only from the provider's IP
// addresses must also take them from the canary's. If a proxy removes DryRunHeader,
// the canary's event is taken for a real one: it is stored as unhandled, once for
// each start of a process, and the canary fails and says why.
//
// The exported fields are settings: change them before the first delivery.
type Canary struct {
	// Name is the name in the log and in the report of package health. Default: the provider's.
	Name string

	// Every is the time that it waits after a delivery, and a sixth of it is what it waits while it fails, so that
	// health is soon well again. Default: 30 seconds.
	Every time.Duration

	// Timeout is the time that a delivery and its answer may take. Default: 10
	// seconds, as long as Asaas waits.
	Timeout time.Duration

	// Transport makes the requests. Redirects are not followed with any Transport,
	// because providers do not follow them. Default: nil, a new connection for
	// each delivery, so that one that is still open does not hide that no new
	// one can be made.
	Transport http.RoundTripper

	// Arrived, if set, makes this the canary of a relay. The relay publishes a delivery, and the delivery has
	// succeeded if a consumer handles it within Timeout. Arrived returns the time at which a consumer last handled
	// one: use [Arrivals] of the [idem.Inbox] that the consumers pass messages to. Run the canary in that program,
	// with the address of the relay:
	//
	//	c := asaas.NewCanary("https://relay.example/webhooks/asaas", token)
	//	c.Arrived = canary.Arrivals(inbox)
	//
	// Default: nil, the address is that of an Inbox.
	Arrived func(context.Context) (time.Time, error)

	// Logger gets a line when the canary begins to fail, when the reason changes,
	// and when it has recovered; nil logs nothing. Default: slog.Default().
	Logger *slog.Logger

	address func() string // a function, so that printing shows no secret in it
	body    []byte
	sign    func(h http.Header, body []byte)

	made time.Time

	mu   sync.Mutex
	last Result
}

// Result is the result of a delivery of a [Canary].
type Result struct {
	At       time.Time // when it ended; zero before the first
	Err      error     // the fault, and the remedy; nil if all is well
	Failures int       // deliveries that have failed in a row, this one included
}

// Failing reports whether the canary has failed at least twice in a row. A single
// failure may be a restart or a lost packet.
func (r Result) Failing() bool { return r.Failures >= 2 }

// New returns a canary; it is for the packages of providers. body is an event
// of [EventType], the same for each delivery, and sign sets the headers that make
// it genuine now. address is the URL that the provider delivers to.
func New(name, address string, body []byte, sign func(h http.Header, body []byte)) *Canary {
	return &Canary{
		Name: name, Every: 30 * time.Second, Timeout: 10 * time.Second, Logger: slog.Default(),
		address: func() string { return address }, body: body, sign: sign, made: time.Now(),
	}
}

// EventType is the type of a canary's event. No provider has it: a genuine delivery of it that is not a dry run
// is an event of an unknown type.
const EventType = store.CanaryType

// Arrivals returns a function for the field Arrived of a relay's canary: it returns the time at which a consumer
// of the receiver's source last got a canary's event from the broker, by the database's clock, or the zero time.
func Arrivals(receiver idem.Receiver) func(context.Context) (time.Time, error) {
	in := inside.Of[interface {
		Inbox() *idem.Inbox
		Pool() *pgxpool.Pool
	}](receiver)
	return func(ctx context.Context) (at time.Time, err error) {
		err = pgtx.Ask(ctx, in.Pool(), func(ctx context.Context, conn *pgxpool.Conn) (err error) {
			at, err = store.LastCanary(ctx, conn, in.Inbox().SourceName())
			return err
		})
		if err != nil {
			return at, fmt.Errorf("canary: looking for its arrival: %w", store.Explain(err))
		}
		return at, nil
	}
}

// Run delivers until ctx ends, and returns nil then. It returns an error
// immediately if the address or a setting makes no sense. [idem.Serve] calls it.
func (c *Canary) Run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	for {
		_ = c.Send(ctx)
		wait := c.Every
		if c.Last().Failing() {
			wait /= 6
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// StopsFirst returns true: [idem.Serve] stops a canary before the server.
func (c *Canary) StopsFirst() bool { return true }

// Send makes one delivery. The error names the fault and the remedy. If ctx ends
// first, the delivery does not count as a result.
func (c *Canary) Send(ctx context.Context) error {
	err := c.check()
	if err == nil {
		err = c.deliverProtected(ctx)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("canary: it was stopped: %w", context.Cause(ctx))
	}
	if err != nil {
		err = fmt.Errorf("canary: %s: %w", c.Name, err)
	}
	now, before := c.note(Result{At: time.Now(), Err: err})
	c.report(ctx, now, before)
	return err
}

// Last returns the result of the last delivery.
func (c *Canary) Last() Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// note makes a result the last one, and counts its failures.
func (c *Canary) note(r Result) (now, before Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before = c.last
	if r.Err != nil {
		r.Failures = before.Failures + 1
	}
	c.last = r
	return r, before
}

// report logs a result. A panic of the application's Logger has no effect.
func (c *Canary) report(ctx context.Context, now, before Result) {
	if c.Logger == nil {
		return
	}
	_ = pgtx.Protect(func() error {
		switch {
		case now.Err == nil && before.Failing():
			c.Logger.InfoContext(ctx, "webhook canary has recovered", slog.String("canary", c.Name), slog.Int("failures", before.Failures))
		case now.Err == nil:
		case now.Failures == 1:
			c.Logger.WarnContext(ctx, "webhook canary failed once", slog.String("canary", c.Name), slog.String("error", now.Err.Error()))
		case now.Failures == 2 || now.Err.Error() != before.Err.Error():
			c.Logger.ErrorContext(ctx, "webhook canary fails: events of the provider will fail, too",
				slog.String("canary", c.Name), slog.String("error", now.Err.Error()))
		}
		return nil
	})
}

// Examine reports whether the canary runs, and has not failed twice in a row. See
// package health.
func (c *Canary) Examine(context.Context, check.Limits) []check.Result {
	r := check.Result{Source: c.Name, Name: "canary"}
	last, since := c.Last(), c.made
	if last.At.After(since) {
		since = last.At
	}
	switch {
	case last.Failing():
		r.Says, r.Cause = last.Err.Error(), last.Err
		if h, ok := errors.AsType[*hidden](last.Err); ok {
			r.Says = fmt.Sprintf("canary: %s: %s: see the error in this application's log", c.Name, h.says)
		}
		return []check.Result{r}
	case time.Since(since) > 3*c.Every+c.Timeout:
		r.Says, r.Remedy = "it does not run", "have the program run it, as it runs the inbox"
		return []check.Result{r}
	case last.At.IsZero():
		r.Says = "it has not been delivered yet"
	case last.Err != nil:
		r.Says = "it failed once, and is tried again"
	case c.Arrived == nil:
		r.Says = "it was handled; it commits nothing, so it does not show that commits wait"
	default:
		r.Says = "it was handled"
	}
	r.Healthy = true
	return []check.Result{r}
}
