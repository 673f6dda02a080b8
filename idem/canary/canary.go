// Package canary delivers an event of its own through the real address, again and again, so
// that a broken deployment is noticed before a customer meets it. See [Canary].
package canary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
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
//	http.Handle("GET /health/webhooks", health.New(processor, canary))
//	return idem.Serve(ctx, server, processor, canary)
//
// Each process that runs it makes its own deliveries, which any process behind the
// address may answer. A receiver that takes deliveries only from the provider's IP
// addresses must also take them from the canary's. If a proxy removes that header,
// the canary's event is taken for a real one: it is stored as unhandled, once for
// each start of a process, and the canary fails and says why.
//
// The exported fields are settings: change them before the first delivery.
type Canary struct {
	// Name is the name in the log and in the report of package health. Default: the provider's.
	Name string

	// Every is the time that it waits after a delivery. Default: 30 seconds.
	Every time.Duration

	// Timeout is the time that a delivery and its answer may take. Default: 10
	// seconds, as long as Asaas waits.
	Timeout time.Duration

	// Transport makes the requests. Redirects are not followed with any Transport,
	// because providers do not follow them. Default: nil, a new connection for
	// each delivery, so that one that is still open does not hide that no new
	// one can be made.
	Transport http.RoundTripper

	// Arrived, if set, makes it the canary of a relay: the relay publishes its deliveries, and one
	// has succeeded once a consumer has handled it, within Timeout. Arrived returns when one last
	// was, such as LastCanary of the [idem.Inbox] or [idem.Processor] that the consumers
	// pass messages to. Run it where that is, and give it the address of the relay:
	//
	//	c := asaas.NewCanary("https://relay.example/webhooks/asaas", token)
	//	c.Arrived = inbox.LastCanary
	//
	// Default: nil, the address is that of a Processor or an Inbox.
	Arrived func(context.Context) (time.Time, error)

	// Logger gets a line when the canary begins to fail, when the reason changes,
	// and when it has recovered; nil logs nothing. Default: slog.Default().
	Logger *slog.Logger

	// Observe, when set, gets the result of each delivery, for metrics. Default: nil.
	Observe func(context.Context, Result)

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
	Duration time.Duration
	Err      error // the fault, and the remedy; nil if all is well
	Failures int   // deliveries that have failed in a row, this one included
}

// Failing reports whether the canary has failed at least twice in a row. A single
// failure may be a restart or a lost packet.
func (r Result) Failing() bool { return r.Failures >= 2 }

// New returns a canary; it is for the packages of providers. body is an event
// of [idem.CanaryType], the same for each delivery, and sign sets the headers that make
// it genuine now. address is the URL that the provider delivers to.
func New(name, address string, body []byte, sign func(h http.Header, body []byte)) *Canary {
	return &Canary{
		Name: name, Every: 30 * time.Second, Timeout: 10 * time.Second, Logger: slog.Default(),
		address: func() string { return address }, body: body, sign: sign, made: time.Now(),
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
		select {
		case <-time.After(c.Every):
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
	start := time.Now()
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
	now, before := c.note(Result{At: time.Now(), Duration: time.Since(start), Err: err})
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

// report tells the application of a result. A panic of its code has no effect.
func (c *Canary) report(ctx context.Context, now, before Result) {
	if c.Observe != nil {
		_ = pgtx.Protect(func() error { c.Observe(ctx, now); return nil })
	}
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

// check finds settings that make no sense.
func (c *Canary) check() error {
	u, err := url.Parse(c.address())
	switch {
	case c.address() == "":
		return fmt.Errorf("canary: the address of %s is empty: give the one that the provider delivers to, or no canary", c.Name)
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("canary: the address of %s is not one that events can be sent to: give a whole one, https://shop.example/webhooks for example", c.Name)
	case c.Every <= 0 || c.Timeout <= 0:
		return fmt.Errorf("canary: Every or Timeout of %s is zero: leave them at their defaults, or set them above zero", c.Name)
	}
	return nil
}

// deliverProtected makes an error of a panic, of an application's Transport for
// example. It leaves out the value of the panic, which may be a secret.
func (c *Canary) deliverProtected(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its delivery panicked with a %T: see whether its Transport is sound", p)
		}
	}()
	return c.deliver(ctx)
}

// deliver makes one delivery of the canary's event.
func (c *Canary) deliver(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var before time.Time
	if c.Arrived != nil {
		var err error
		if before, err = c.Arrived(ctx); err != nil {
			return &hidden{"Postgres behind the relay could not be asked for the last canary", err}
		}
	}
	outcome, err := c.dryRun(ctx, c.body)
	switch {
	case err != nil:
		return err
	case outcome == idem.Published && c.Arrived == nil:
		return errors.New("a Relay was reached: set Arrived of the canary, to LastCanary of the Inbox or Processor behind it")
	case outcome == idem.Published:
		return c.await(ctx, before)
	case outcome == idem.Done && c.Arrived != nil:
		return errors.New("a Processor or an Inbox was reached, and Arrived is for a relay: give the canary the relay's address, or no Arrived")
	}
	return failureOf(outcome)
}

// DryRun delivers an event of the provider's once, as [Canary.Send] delivers the canary's, and
// returns the outcome of its dry run: the application runs its handler, and rolls back. A nil
// body is the canary's own event, which has no handler. The error names the fault of the way
// there, and the remedy. It is for the packages of providers.
func (c *Canary) DryRun(ctx context.Context, body []byte) (idem.Outcome, error) {
	if err := c.check(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if body != nil {
		return c.dryRun(ctx, body)
	}
	outcome, err := c.dryRun(ctx, c.body)
	if err == nil && outcome != idem.Published { // a relay has verified it
		err = failureOf(outcome)
	}
	return outcome, err
}

// dryRun makes one delivery as the provider would, which asks for a dry run.
func (c *Canary) dryRun(ctx context.Context, body []byte) (idem.Outcome, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address(), bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "paghooks-canary (+https://github.com/paghooks/paghooks)")
	r.Header.Set(idem.DryRunHeader, "1")
	c.sign(r.Header, body)
	if u := r.URL.User; u != nil {
		password, _ := u.Password()
		r.SetBasicAuth(u.Username(), password)
	}
	// An http.Client would show where a broken redirect leads.
	response, err := c.transport().RoundTrip(r)
	if err != nil {
		return "", c.noAnswer(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return "", c.noAnswer(err)
	}
	return outcomeOf(response.StatusCode, answer)
}

// look is the time between two looks for a canary's arrival.
const look = 100 * time.Millisecond

// await waits until a consumer has handled a canary later than before.
func (c *Canary) await(ctx context.Context, before time.Time) error {
	for {
		at, err := c.Arrived(ctx)
		if err == nil && at.After(before) {
			return nil
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return &hidden{"Postgres behind the relay could not be asked for the canary", err}
			}
			return fmt.Errorf("the relay has published it, and no consumer has handled it within %s: see whether consumers run, what their log says, "+
				"how much waits in the broker, and whether they have the relay's secret and the same version of paghooks", c.Timeout)
		}
	}
}

func (c *Canary) transport() http.RoundTripper {
	standard, ok := http.DefaultTransport.(*http.Transport)
	switch {
	case c.Transport != nil:
		return c.Transport
	case !ok:
		return http.DefaultTransport
	}
	fresh := standard.Clone()
	fresh.DisableKeepAlives = true
	return fresh
}

// noAnswer leaves out the address, which may hold a secret.
func (c *Canary) noAnswer(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("there was no answer within %s: see whether the application is overloaded, and what lies between", c.Timeout)
	}
	return &hidden{"there was no answer: see whether the application runs, its name in DNS, its network and its TLS certificate", err}
}

// hidden has the public text of a canary, and its cause, which may name hosts and users.
type hidden struct {
	says  string
	cause error
}

func (h *hidden) Error() string { return h.says + ": " + h.cause.Error() }
func (h *hidden) Unwrap() error { return h.cause }
