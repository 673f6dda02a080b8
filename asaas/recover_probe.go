package asaas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/paghooks/paghooks/idem"
)

// Probe reports whether the fault is over, and deliveries to w may begin. An error,
// which [Recover] returns, names the fault. A Probe changes nothing that lasts, and
// ends when ctx does.
//
// If Recover was given the application's events, the Events of w begin with the types
// of those that the application owes.
//
// [DryRunProbe] is one for every application. The best one knows yours: it tries the
// very events that failed, with [idem.Common.DryReplay].
type Probe func(ctx context.Context, w *Webhook) error

// DryRunProbe returns a Probe that sends made-up events to the webhook's own URL,
// with the webhook's token and [idem.DryRunHeader]: the handlers of the running
// application work on them in transactions that are rolled back. That proves the
// way there (network, TLS, proxies, token), the database, and that the handlers
// run. It tries every event type that the webhook subscribes to, in their order,
// each as Asaas does: for 10 seconds, without following redirects. The first
// that fails ends it. It passes when all that have a handler have run, and at
// least one has.
//
// The event is about something that does not exist: a charge is
// "pay_0_dryRunDryRun00", which belongs to no order (it has no ExternalReference);
// anything else has a UUID of zeros. The event's id begins with "evt_dry_run_". A
// handler that fails for a row that it does not find needs [idem.IsDryRun], or a
// Probe of your own.
//
// The handlers are called for real, and only their transaction is rolled back: an
// HTTP request that a handler makes is made, an invoice is issued for
// "pay_0_dryRunDryRun00". A handler asks [idem.IsDryRun] before it does such a
// thing; function DryRun of package idemtest finds those that do not.
//
// An event type that is newer than this package is tried with the body of one that is
// named alike.
//
// The events come from the machine that runs the probe, not from Asaas's addresses:
// a receiver with [Dispatcher].AllowFrom refuses them, unless that has the machine's
// address, as the receiver sees it.
//
// The receiver must be an [idem.Processor] or [idem.Inbox]. Any other takes the
// event for a real one: that is an error, which says so.
func DryRunProbe(token string) Probe {
	return func(ctx context.Context, w *Webhook) error {
		if err := checkProbe(w, token); err != nil {
			return fmt.Errorf("dry run: %w", err)
		}
		target, err := url.Parse(w.URL.Or(""))
		if err != nil || target.Host == "" || target.Scheme != "https" && target.Scheme != "http" {
			return errors.New("dry run: the webhook's URL is not one that events can be sent to: correct it at Asaas")
		}
		d := &dryRun{target: target, token: token, timeout: asaasTimeout}
		return d.try(ctx, w.Events.Or(nil))
	}
}

// checkProbe finds mistakes that make real deliveries fail, though a probe would pass.
func checkProbe(w *Webhook, token string) error {
	switch {
	case !isToken(token):
		return errors.New("the webhook's token is empty: give the one that the application verifies with, Asaas does not tell it")
	case w.APIVersion.Or(3) == 2:
		return errors.New("the webhook has apiVersion 2, whose deliveries carry no token: make a new webhook with apiVersion 3")
	case !w.HasAuthToken.Or(true):
		return errors.New("the webhook has no token at Asaas, so its deliveries are refused: set one at Asaas, or through its API")
	}
	return nil
}

// asaasTimeout is the time that Asaas waits for an answer.
const asaasTimeout = 10 * time.Second

// dryRun sends made-up events to a receiver.
type dryRun struct {
	target  *url.URL
	token   string
	timeout time.Duration
	local   atomic.Value // the address of this machine that the last delivery came from
}

// try goes on until an event type fails.
func (d *dryRun) try(ctx context.Context, types []EventType) error {
	handled := false
	for _, t := range types {
		outcome, err := d.deliver(ctx, syntheticEvent(t))
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("dry run of %s at %s: %s: %w", t, d.place(), ended(ctx), context.Cause(ctx))
		case err != nil:
			return fmt.Errorf("dry run of %s at %s: %w", t, d.place(), err)
		}
		handled = handled || outcome == idem.Done
	}
	switch {
	case len(types) == 0:
		return errors.New("dry run: the webhook subscribes to no event type: subscribe to those that the application handles")
	case !handled:
		return fmt.Errorf("dry run at %s: the application handles none of the %d event types that the webhook subscribes to, so that nothing is proved: "+
			"subscribe to those that it handles", d.place(), len(types))
	}
	return nil
}

// deliver sends one event, and returns its outcome: handled or not wanted.
func (d *dryRun) deliver(ctx context.Context, body []byte) (idem.Outcome, error) {
	if strings.ContainsFunc(d.token, unicode.IsControl) {
		return "", errors.New("the token has a line break or the like, which no delivery can carry: take it away")
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.target.String(), bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", defaultUserAgent())
	r.Header.Set(TokenHeader, d.token)
	r.Header.Set(idem.DryRunHeader, "1")
	client := http.Client{
		Transport:     receiverOf(ctx),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) { d.local.Store(c.Conn.LocalAddr().String()) },
	})))
	if err != nil {
		return "", noAnswer(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return judgeDryRun(answered{status: response.StatusCode, body: answer, err: err}, d.token, d.from())
}

// receiverKey is the context's key for the way to the receiver.
type receiverKey struct{}

// withReceiver has a DryRunProbe take the way of a Client's Receiver.
func withReceiver(ctx context.Context, way http.RoundTripper) context.Context {
	return context.WithValue(ctx, receiverKey{}, way)
}

func receiverOf(ctx context.Context) http.RoundTripper {
	way, _ := ctx.Value(receiverKey{}).(http.RoundTripper)
	return way
}

func noAnswer(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("there is no answer in time, and Asaas waits %s: see what holds the application up: %w", asaasTimeout, transportError(err))
	}
	return fmt.Errorf("there is no answer: see whether the application runs, and its network, TLS certificate and name in DNS: %w", transportError(err))
}

// from names the address of this machine, as far as it can be known here.
func (d *dryRun) from() string {
	local, _ := d.local.Load().(string)
	address, ok := parseAddress(local)
	if !ok {
		return ""
	}
	return ", " + address.String() + " here, and another one behind a NAT or a proxy,"
}

// place returns the receiver's URL without parts that may be a secret.
func (d *dryRun) place() string {
	return strings.ReplaceAll(placeOf(d.target), d.token, redacted)
}
