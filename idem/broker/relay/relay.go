package relay

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/internal/inside"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/internal/wire"
)

// Relay receives the deliveries of one source and publishes them to a broker, without
// Postgres: the provider gets its 200 once the broker has confirmed the event. It verifies
// deliveries before it publishes them, and signs its messages.
//
// Pass it to [idem.Serve] and health.New, as an [idem.Inbox]. It has no handlers and no stored
// events: dry runs go to the address of an inbox. A canary goes
// through the relay, the broker and a consumer: see the field Arrived of canary.Canary.
//
// The exported fields, and those of [idem.Endpoint], are settings: change them before the
// first event.
type Relay struct {
	idem.Endpoint

	// Timeout is the time that publishing an event may take. The provider waits
	// meanwhile, Asaas for 10 seconds. Default: 8 seconds.
	Timeout time.Duration

	publisher broker.Publisher
	secret    func() string // a function, so that printing does not show it
}

var (
	_ http.Handler = (*Relay)(nil)
	_ idem.Part    = (*Relay)(nil)
)

// New returns a relay with its settings at their defaults. secret signs the
// messages: at least 32 characters that cannot be guessed, such as openssl rand -hex 32
// prints. Consumers need the same one, see [To].
//
// It panics if the secret is shorter, or if the source's name cannot be used: see
// [idem.Source].
func New(source idem.Source, p broker.Publisher, secret string) *Relay {
	if err := checkSecrets("New", secret); err != nil {
		panic(err.Error())
	}
	r := &Relay{Timeout: 8 * time.Second, publisher: p, secret: func() string { return secret }}
	r.inside().Init(source)
	return r
}

// endpoint is the inside of the relay's Endpoint.
type endpoint interface {
	Init(source idem.Source)
	Serve(w http.ResponseWriter, r *http.Request, limit time.Duration, process, dryRun func(context.Context, idem.Event) (idem.Outcome, error))
	Accept(ctx context.Context, e idem.Event, limit time.Duration, process func(context.Context, idem.Event) (idem.Outcome, error)) (idem.Outcome, error)
}

func (r *Relay) inside() endpoint { return inside.Of[endpoint](&r.Endpoint) }

// ServeHTTP receives one delivery as [idem.Inbox.ServeHTTP] does, and answers 200 once
// the broker has confirmed the event.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.inside().Serve(w, req, r.Timeout, r.relay, r.dryRun)
}

// Accept publishes one verified event without HTTP: a nil error means that the event
// need not come again.
func (r *Relay) Accept(ctx context.Context, e idem.Event) (idem.Outcome, error) {
	return r.inside().Accept(ctx, e, r.Timeout, r.relay)
}

// relay hands the event to the broker.
func (r *Relay) relay(ctx context.Context, e idem.Event) (idem.Outcome, error) {
	if err := r.publish(ctx, e); err != nil {
		return idem.Retrying, fmt.Errorf("the broker has not confirmed the event: %w", err)
	}
	return idem.Published, nil
}

// publish publishes the event, and does not wait for the application's publisher when the time is over.
func (r *Relay) publish(ctx context.Context, e idem.Event) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	m, start := r.message(e), time.Now()
	var err error
	select {
	case err = <-pgtx.Start(func() error { return r.publisher.Publish(ctx, m) }):
		if ctx.Err() == nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	return fmt.Errorf("no answer in time, for %s: it is unavailable, or blocks: %w", time.Since(start).Round(time.Millisecond), err)
}

// Run checks the settings, and returns nil when ctx ends: a relay has no work beside its
// deliveries. [idem.Serve] calls it.
func (r *Relay) Run(ctx context.Context) error {
	if r.Timeout <= 0 {
		return errors.New("relay: Timeout of the relay is zero or missing: leave it at its default, or set it above zero")
	}
	<-ctx.Done()
	return nil
}

// message is the event as it is published. Its ID and Key are unique among accounts.
func (r *Relay) message(e idem.Event) broker.Message {
	m := broker.Message{
		Source: e.Source, ID: e.ID, Type: e.Type, Key: e.Key, Time: e.OccurredAt,
		Body: seal(e, time.Now(), r.secret()),
	}
	if e.Scope != "" || strings.Contains(e.ID, "/") { // a broker drops a message with the ID of another
		m.ID = url.PathEscape(e.Scope) + "/" + e.ID
	}
	if e.Scope != "" && e.Key != "" {
		m.Key = e.Scope + "/" + e.Key
	}
	return m
}

// dryRun publishes a canary's event. Of others it says that there is nothing to try.
func (r *Relay) dryRun(ctx context.Context, e idem.Event) (idem.Outcome, error) {
	if e.Type != store.CanaryType {
		return idem.Published, errors.New("relay: it has no handlers: send dry runs to the address of an Inbox")
	}
	// The same id would make it a duplicate to a broker.
	return r.relay(ctx, idem.Event{Source: r.SourceName(), ID: "canary-" + rand.Text(), Type: store.CanaryType})
}

// A message's body is a line with the signature of the rest, a line of JSON that
// names the event, and the provider's body as it is.
const sealed = "paghooks-relay-1 "

// sealedName is the line of a message that names its event.
type sealedName struct {
	wire.Name
	RelayedAt time.Time `json:"relayed_at"`
}

// seal is the body of an event's message, which is relayed at a time. The event is
// normalized.
func seal(e idem.Event, at time.Time, secret string) []byte {
	header, err := json.Marshal(sealedName{wire.NameOf(store.Event(e)), at.UTC()})
	if err != nil {
		panic(err) // texts, a number, and a time that JSON has
	}
	signed := append(append(header, '\n'), e.Payload...)
	return append([]byte(sealed+hex.EncodeToString(sign(signed, secret))+"\n"), signed...)
}

func sign(signed []byte, secret string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(sealed))
	mac.Write(signed)
	return mac.Sum(nil)
}

// unseal verifies a message's body, and only then reads it.
func unseal(body []byte, secrets []string) (e idem.Event, at time.Time, err error) {
	head, signed, ok := bytes.Cut(body, []byte("\n"))
	digits, found := bytes.CutPrefix(head, []byte(sealed))
	if !ok || !found {
		return e, at, errors.New("the message is not a relay's: see who else publishes to its topic or queue")
	}
	signature, err := hex.DecodeString(string(digits))
	if err != nil || !anySigns(signed, signature, secrets) {
		return e, at, errors.New("the message is not signed with one of the secrets: let relay and consumer have the same one, then readmit it")
	}
	header, payload, _ := bytes.Cut(signed, []byte("\n"))
	var s sealedName
	err = json.Unmarshal(header, &s)
	if err == nil {
		var row store.Event
		row, err = s.Event(payload)
		e = idem.Event(row)
	}
	if err != nil {
		return e, at, fmt.Errorf("the message is of a newer relay: update the consumer, then readmit it: %w", err)
	}
	return e, s.RelayedAt, nil
}

func anySigns(signed, signature []byte, secrets []string) (yes bool) {
	for _, s := range secrets {
		if hmac.Equal(sign(signed, s), signature) {
			yes = true
		}
	}
	return yes
}

// minSecret is the length of the shortest secret: 128 bits as hexadecimal digits.
const minSecret = 32

// checkSecrets returns an error for secrets that are missing or too short. name is the
// function that has them.
func checkSecrets(name string, secrets ...string) error {
	if len(secrets) == 0 {
		return fmt.Errorf("relay: %s has no secret: give it the relay's", name)
	}
	for _, s := range secrets {
		if len(s) < minSecret {
			return fmt.Errorf("relay: a secret of %s has %d characters, and needs %d: let openssl rand -hex 32 make one", name, len(s), minSecret)
		}
	}
	return nil
}
