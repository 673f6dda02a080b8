package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Relay receives the deliveries of one source and publishes them to a broker, without
// Postgres: the provider gets its 200 once the broker has confirmed the event. In the
// same program or another one, a consumer of the broker passes the messages to the
// function that [Relayed] returns, which stores or processes them:
//
//	relay := idem.NewRelay(events, publisher, secret)
//	http.Handle("POST /webhooks/asaas", relay)
//
//	err := idemkafka.Consume(ctx, client, idem.Relayed(inbox, secret))
//
// There is a module for each of several brokers, see package broker.
//
// A relay verifies deliveries before it publishes them, and signs what it publishes.
// A consumer verifies that signature, so no handler sees what somebody else has
// published.
//
// A broker hardly makes an application faster: an [Inbox] stores about as many events
// as a broker that writes them to the disk. It keeps events while Postgres is
// unavailable, as a [Spool] does without a broker, and lets other programs read them.
//
// Pass it to [Serve] and health.New, as a [Processor] or an [Inbox]. It has no
// handlers and no stored events: dry runs and canaries go to the address of one of
// those.
//
// The exported fields, and those of [Endpoint], are settings: change them before the
// first event.
type Relay struct {
	Endpoint

	// Timeout is how long publishing an event may take. The provider waits
	// meanwhile, Asaas for 10 seconds. With a Fallback, the broker has half of it.
	// Default: 8 seconds.
	Timeout time.Duration

	// Fallback, if set, gets the events that the broker does not confirm: it is the
	// Accept of an [Inbox], for example. Then the provider is asked to deliver again
	// only if both fail. It also gets events that are too large for the broker,
	// which would fail each time. Its events may overtake those that wait in the
	// broker. Default: nil.
	Fallback func(context.Context, Event) (Outcome, error)

	publisher broker.Publisher
	secret    func() string // a function, so that printing does not show it
}

var _ http.Handler = (*Relay)(nil)

// NewRelay returns a relay with its settings at their defaults. secret signs the
// messages: at least 32 characters that nobody can guess, such as openssl rand -hex 32
// prints. Consumers need the same one, see [Relayed].
//
// It panics if the secret is shorter, or if the source's name cannot be used: see
// [Source].
func NewRelay(source Source, p broker.Publisher, secret string) *Relay {
	checkSecret(secret)
	return &Relay{
		Endpoint:  NewEndpoint(source),
		Timeout:   8 * time.Second,
		publisher: p,
		secret:    func() string { return secret },
	}
}

// ServeHTTP receives one delivery as [Processor.ServeHTTP] does, and answers 200 once
// the broker has confirmed the event.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	d, ok := r.Open(w, req)
	if !ok {
		return
	}
	accept := r.accept
	if d.DryRun {
		accept = r.dryRun
	}
	outcome, err := accept(req.Context(), d)
	r.Answer(w, req, d, outcome, err)
}

// Accept publishes one verified event without HTTP: a nil error means that the event
// need not come again.
func (r *Relay) Accept(ctx context.Context, e Event) (Outcome, error) {
	return r.accept(ctx, Delivery{Event: e})
}

// accept is Accept of a delivery.
func (r *Relay) accept(ctx context.Context, d Delivery) (Outcome, error) {
	return r.Receive(ctx, d, r.Timeout, r.relay)
}

// relay hands the event to the broker, or else to the Fallback. If that took what the
// broker did not, the error says why the broker did not.
func (r *Relay) relay(ctx context.Context, e Event) (Outcome, error) {
	err := r.publish(ctx, e)
	if err == nil {
		return Published, nil
	}
	err = fmt.Errorf("the broker has not confirmed the event: %w", err)
	if r.Fallback == nil {
		return Retrying, err
	}
	outcome, fallbackErr := r.fallBack(ctx, e)
	if fallbackErr != nil {
		return Retrying, errors.Join(err, fallbackErr)
	}
	return outcome, err
}

// publish publishes the event.
func (r *Relay) publish(ctx context.Context, e Event) error {
	limit := r.Timeout
	if r.Fallback != nil {
		limit /= 2
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m := r.message(e)
	return inTime(ctx, func() error { return r.publisher.Publish(ctx, m) })
}

// fallBack gives the event to the Fallback.
func (r *Relay) fallBack(ctx context.Context, e Event) (Outcome, error) {
	var outcome Outcome
	err := inTime(ctx, func() (err error) {
		outcome, err = r.Fallback(ctx, e)
		return err
	})
	if err == nil && !outcome.Acknowledged() {
		err = fmt.Errorf("its outcome is %q", outcome)
	}
	if err != nil {
		return Retrying, fmt.Errorf("nor has the Fallback: %w", err) // it may set outcome yet
	}
	return outcome, nil
}

// inTime calls f, which is the application's, and does not wait for it when ctx ends.
func inTime(ctx context.Context, f func() error) error {
	select {
	case err := <-pgtx.Start(f):
		return err
	case <-ctx.Done():
		return fmt.Errorf("no answer in time: it is unavailable, or blocks: %w", ctx.Err())
	}
}

// Run checks the settings, and returns nil when ctx ends: a relay has no work beside its
// deliveries. [Serve] calls it.
func (r *Relay) Run(ctx context.Context) error {
	if err := checkSettings("relay", map[string]bool{"Timeout": r.Timeout > 0}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// message is the event as it is published. Its ID and Key are unique among accounts.
func (r *Relay) message(e Event) broker.Message {
	m := broker.Message{
		Source: e.Source, ID: e.ID, Type: cmp.Or(e.Type, "unreadable"), Key: e.Key, Time: e.OccurredAt,
		Body: seal(e, time.Now(), r.secret()),
	}
	if e.Scope != "" || strings.Contains(e.ID, "/") { // a broker drops what has the ID of another
		m.ID = url.PathEscape(e.Scope) + "/" + e.ID
	}
	if e.Scope != "" && e.Key != "" {
		m.Key = e.Scope + "/" + e.Key
	}
	return m
}

// dryRun says that there is nothing to try.
func (r *Relay) dryRun(context.Context, Delivery) (Outcome, error) {
	return Published, errors.New("idem: a relay has no handlers: send dry runs and canaries to the address of a Processor or an Inbox")
}
