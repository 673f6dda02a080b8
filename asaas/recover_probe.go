package asaas

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/optional"
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

// judgeDryRun reads the answer to a dry run. An event that is not handled, and need not be, is
// no error. from names the address that the dry run came from.
func judgeDryRun(a answered, token, from string) (idem.Outcome, error) {
	var said struct {
		DryRun idem.Outcome `json:"dry_run"`
		Reason idem.Reason  `json:"reason"`
	}
	_ = json.Unmarshal(a.body, &said) // a field that does not fit stays empty
	if said.DryRun != "" && a.status == http.StatusServiceUnavailable {
		return said.DryRun, wrongWith(said.DryRun)
	}
	switch {
	case a.isHTML():
		return "", fmt.Errorf("it was answered with %d and a page of HTML: a proxy or another application stands at the webhook's URL; correct the URL, or the way to the receiver", a.status)
	case a.status/100 == 2:
		return "", fmt.Errorf("it was answered with %d, as a real event: it may have been processed, look for the ids evt_dry_run_… and %s in the application's data. "+
			"The receiver does not know dry runs, or a proxy drops the header %s", a.status, dryRunCharge, idem.DryRunHeader)
	case a.status/100 == 3:
		return "", fmt.Errorf("it was answered with the redirect %d, which Asaas does not follow: set the webhook's URL to where it leads", a.status)
	case said.Reason != "":
		return "", refusedFor(a.status, said.Reason, token, from)
	}
	return "", unexpected(a.status)
}

// wrongWith returns an error for the outcome of a dry run that should not be.
func wrongWith(o idem.Outcome) error {
	switch o {
	case idem.Done, idem.Unhandled, idem.Ignored:
		return nil
	case idem.Parked:
		return errors.New("the event does not decode in the application: let it run the same version of paghooks")
	case idem.Retrying:
		return errors.New("the handler failed, or its database: the application's log has the error of the dry run. " +
			"If it failed only because the charge or the like does not exist, let it do without in a dry run")
	case idem.Published:
		return errors.New("a Relay answers at the webhook's URL, and has no handlers to try: see that its consumers work, then remove the penalty with Client.RemoveBackoff")
	}
	return errors.New("the receiver is newer than this program, which does not know its answer: use the same version of paghooks")
}

// refusedFor returns the remedy for a receiver that refuses the delivery.
func refusedFor(status int, reason idem.Reason, token, from string) error {
	advice := "see the application's log"
	switch reason {
	case ReasonNotConfigured:
		advice = "the application has no token to verify with, set it there"
	case ReasonWrongToken, ReasonMissingToken, ReasonSeveralTokens, ReasonAmbiguousToken:
		advice = "give the token that the application verifies with, and see that the webhook has the same at Asaas"
	case ReasonUnknownAccount:
		advice = "the application knows no account at this URL"
	case ReasonAddressNotAllowed:
		advice = "the application takes events from Asaas's addresses only: let it take those of this machine" + from + " as long as this runs"
	}
	return fmt.Errorf("the application refused it with %d (%s): %s", status, clean(string(reason), []string{token}), advice)
}

// unexpected returns the remedy for an answer that has nothing but its status.
func unexpected(status int) error {
	advice := "no receiver of paghooks answers so: see the application, and the proxies before it"
	switch status {
	case http.StatusUnauthorized:
		advice = "the token is not taken: give the one that the application verifies with"
	case http.StatusForbidden:
		advice = "a firewall or a proxy refuses it: see whether it lets Asaas through"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		advice = "nothing takes events there: compare the webhook's URL with the application's routes"
	case http.StatusServiceUnavailable:
		advice = "the application takes no events now: see its log"
	}
	return fmt.Errorf("it was answered with %d: %s", status, advice)
}

// syntheticEvent makes the body of an event about nothing that exists, with the fields that
// Asaas always sends. It is the package's own struct, so that every field is
// there that must be; that of a type named alike for one that it does not know.
func syntheticEvent(t EventType) []byte {
	now := time.Now().In(Brasilia())
	envelope := Envelope{ID: "evt_dry_run_" + rand.Text(), Event: t, DateCreated: DateTime(now.Format(time.DateTime))}
	create := newEvent[alike(t)]
	if create == nil {
		body, _ := json.Marshal(envelope)
		return body
	}
	e := create()
	*e.envelope() = envelope
	if p, ok := e.(*PaymentEvent); ok {
		p.Payment = syntheticPayment(t, Date(now.Format(time.DateOnly)))
	}
	nameNobody(e)
	fillEssentials(e)
	body, _ := json.Marshal(e) // structs that were decoded, and are tested all
	return body
}

// alike is the type itself, or else the known one that begins with the same
// words and most of the same letters; "" if none does.
func alike(t EventType) (best EventType) {
	if t = canonical(t); newEvent[t] != nil {
		return t
	}
	longest := strings.IndexByte(string(t), '_') // the first word, at least
	if longest < 0 {
		return ""
	}
	for name := range newEvent {
		n := commonPrefix(string(name), string(t))
		if n > longest || n == longest && best != "" && name < best {
			best, longest = name, n
		}
	}
	return best
}

func commonPrefix(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// dryRunCharge looks like the id of a charge, and is none.
const dryRunCharge = "pay_0_dryRunDryRun00"

// nobody is an id that fits a column of text as well as one of UUIDs.
const nobody = "00000000-0000-0000-0000-000000000000"

// nameNobody gives the event's entity an id, if it has none.
func nameNobody(e Event) {
	for _, field := range reflect.ValueOf(e).Elem().Fields() {
		if field.Kind() != reflect.Struct {
			continue
		}
		if id := field.FieldByName("ID"); id.IsValid() && id.Kind() == reflect.String && id.IsZero() {
			id.SetString(nobody)
		}
	}
}

// syntheticPayment is a charge without an order, in the state that the event
// type says.
func syntheticPayment(t EventType, today Date) Payment {
	status := PaymentStatus(strings.TrimPrefix(string(t), "PAYMENT_"))
	if !status.Known() {
		status = PaymentStatusPending
	}
	return Payment{
		Object: "payment", ID: dryRunCharge, Customer: "cus_dry_run",
		DateCreated: today, DueDate: today, OriginalDueDate: today,
		Value: oneReal, NetValue: optional.Of(oneReal), BillingType: BillingTypePix, Status: status,
		InvoiceURL: "https://invoice.example/dry_run", InvoiceNumber: "0",
	}
}

var oneReal = Cents(100)

// fillEssentials gives the event's entity an amount and a status, where it
// has such a field and nothing in it: an event without them is not handled.
func fillEssentials(e Event) {
	if b, ok := e.(*BalanceEvent); ok {
		b.Balance = optional.Of(BalanceBlock{Value: optional.Of(oneReal)})
	}
	for _, object := range reflect.ValueOf(e).Elem().Fields() {
		if object.Kind() != reflect.Struct {
			continue
		}
		if value := object.FieldByName("Value"); value.IsValid() && value.Type() == reflect.TypeFor[Money]() && value.IsZero() {
			value.Set(reflect.ValueOf(oneReal))
		}
		if status := object.FieldByName("Status"); status.IsValid() && status.Kind() == reflect.String && status.IsZero() {
			begin(status)
		}
	}
}

// begin sets a status to the one that its kind of entity begins with.
func begin(status reflect.Value) {
	for _, value := range []string{"PENDING", "SCHEDULED", "ACTIVE", "AWAITING_REQUEST", "ELIGIBLE"} {
		status.SetString(value)
		if status.Interface().(interface{ Known() bool }).Known() {
			return
		}
	}
}
