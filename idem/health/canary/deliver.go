package canary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
)

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
		return errors.New("a Relay was reached: set Arrived of the canary, to canary.Arrivals of the inbox behind it")
	case outcome == idem.Published:
		return c.await(ctx, before)
	case outcome == idem.Done && c.Arrived != nil:
		return errors.New("an Inbox was reached, and Arrived is for a relay: give the canary the relay's address, or no Arrived")
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
	r.Header.Set(idem.DryRunHeader, idem.BodyID(body)) // so that the receiver sees whether it is this one
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

// outcomeOf returns the outcome of a dry run. An answer of anything but a dry run is an error, which
// names the fault and the remedy.
func outcomeOf(status int, body []byte) (idem.Outcome, error) {
	var said struct {
		DryRun idem.Outcome `json:"dry_run"`
		Reason idem.Reason  `json:"reason"`
	}
	_ = json.Unmarshal(body, &said) // a field that does not fit stays empty
	switch {
	case status == http.StatusServiceUnavailable && said.DryRun != "":
		return said.DryRun, nil
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")):
		return "", fmt.Errorf("it was answered with %d and a page of HTML: a proxy or another application stands at the address, correct that or the way to the receiver", status)
	case status/100 == 2:
		return "", fmt.Errorf("it was answered with %d, as a real event: the receiver does not know dry runs, or a proxy drops the header %s: have it pass", status, idem.DryRunHeader)
	case status/100 == 3:
		return "", fmt.Errorf("it was answered with the redirect %d, which providers do not follow: give the address that it leads to, here and at the provider", status)
	case changed[said.Reason] != "":
		return "", errors.New(changed[said.Reason])
	case said.Reason == idem.ReasonNotConfigured:
		return "", errors.New("the application has no token or secret to verify with: set it, is the environment variable there?")
	case said.Reason != "":
		return "", fmt.Errorf("the application refused it with %d (%s): give the canary the token or secret that the application verifies with, "+
			"let the application take events from this machine's address and time, and let nothing on the way change a body that is signed",
			status, printableReason(said.Reason))
	}
	return "", fmt.Errorf("it was answered with %d, as no receiver of paghooks does: see the application's log and routes, and the proxies before it", status)
}

// changed holds the faults of a body that has not arrived as it was sent.
var changed = map[idem.Reason]string{
	idem.ReasonEmptyBody: "the application was reached, and its body arrived empty: something in front of the receiver has read it, " +
		"a middleware that logs bodies for example: have it put the body back, or run after the receiver",
	idem.ReasonChangedBody: "the application was reached, and another body arrived than was sent: something in front of the receiver has " +
		"changed, encoded or wrapped it: have that pass bodies on unchanged",
	idem.ReasonCutBody: "the application was reached, and its body did not arrive whole: see what cuts bodies off in front of the receiver",
	idem.ReasonLargeBody: "the application was reached, and its body arrived larger than MaxBody: see what adds to bodies in front of the receiver, " +
		"or raise MaxBody",
}

// failureOf returns the fault that the outcome of a canary's dry run shows, or nil.
func failureOf(o idem.Outcome) error {
	switch o {
	case idem.Done:
		return nil
	case idem.Retrying:
		return errors.New("the application was reached, and could not write to Postgres, or to the broker of a relay: see its log for the error of the dry run")
	}
	return errors.New("the application was reached, got the body as it was sent, and does not know canaries: let all of its processes run the same version of paghooks")
}

// printableReason returns a reason if it is one: any server could send anything.
func printableReason(r idem.Reason) idem.Reason {
	strange := func(c rune) bool { return (c < 'a' || c > 'z') && c != '_' }
	if len(r) > 40 || strings.ContainsFunc(string(r), strange) {
		return "for a reason that is none of paghooks's"
	}
	return r
}
