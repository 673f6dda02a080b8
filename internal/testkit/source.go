package testkit

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// Note is the event of the shop's provider. Its type is paid, where a test names no other.
type Note struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Order string `json:"order"`
}

// Source is the provider. Its token is "right", and its account is in the header account. A delivery with the token
// "none" is refused as if the program had no token, and with "unsure" as if accounts could not be looked up. The zero
// Source has the name notes.
type Source struct {
	idem.Routes
	name string
}

// NewSource returns a provider of that name.
func NewSource(name string) *Source { return &Source{name: name} }

// Name returns the name of [NewSource].
func (s *Source) Name() string { return cmp.Or(s.name, "notes") }

// Open returns the event of a delivery.
func (s *Source) Open(r *http.Request) (idem.Event, error) {
	switch r.Header.Get("token") {
	case "right":
	case "":
		return idem.Event{}, &idem.Refusal{Source: s.Name(), Reason: "missing_token", Hint: "send a token"}
	case "none":
		return idem.Event{}, &idem.Refusal{Source: s.Name(), Reason: idem.ReasonNotConfigured, Hint: "configure a token"}
	case "unsure":
		return idem.Event{}, fmt.Errorf("%s: the token cannot be looked up", s.Name())
	default:
		return idem.Event{}, &idem.Refusal{Source: s.Name(), Reason: "wrong_token", Hint: "send the right token"}
	}
	body, err := idem.ReadBody(r)
	if err != nil {
		return idem.Event{}, err
	}
	e := Identify(body)
	e.Source, e.Scope = s.Name(), r.Header.Get("account")
	return e, nil
}

// Identify returns the event of a body that the provider notes has sent.
func Identify(body []byte) idem.Event {
	n := new(Note)
	e := idem.Event{Source: "notes", Payload: body}
	if json.Unmarshal(body, n) == nil {
		e.ID, e.Type, e.Key = n.ID, n.Type, n.Order
	}
	return e
}

// NewBody is the body of an event of a type that came after the handlers: new.
const NewBody = `{"id":"e1","type":"new","order":"o1"}`

// Paid returns the body of a paid note of the order o1.
func Paid(id string) string { return About(id, "paid", "o1") }

// About returns the body of a note of a type and an order.
func About(id, eventType, order string) string {
	return fmt.Sprintf(`{"id":%q,"type":%q,"order":%q}`, id, eventType, order)
}

// Gzipped returns a body as something compresses it on its way.
func Gzipped(body string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, body)
	_ = w.Close()
	return b.String()
}

// Letter returns a paid event of an order, at a second of the provider's clock; at 0
// the provider does not say when.
func Letter(id, order string, second int) idem.Event {
	e := At(second, id, "paid", order)
	if second == 0 {
		e.OccurredAt = time.Time{}
	}
	return e
}

// At returns an event of an order at a second of the provider's clock.
func At(second int, id, eventType, order string) idem.Event {
	e := Identify([]byte(About(id, eventType, order)))
	e.OccurredAt = time.Unix(1_700_000_000+int64(second), 0)
	return e
}

// In returns the event as one of an account.
func In(scope string, e idem.Event) idem.Event {
	e.Scope = scope
	return e
}

// IDs returns the IDs of events, each after its account if it has one.
func IDs(events []idem.StoredEvent) (all []string) {
	for _, s := range events {
		all = append(all, strings.TrimPrefix(s.Scope+" "+s.ID, " "))
	}
	return all
}

// Pay is the handler that a user would write: one effect in the transaction.
func Pay(ctx context.Context, tx pgx.Tx, n *Note) error {
	e, _ := idem.EventFrom(ctx)
	_, err := tx.Exec(ctx, `insert into effects (event, scope) values ($1, $2)`, n.ID, e.Scope)
	return err
}

// RefuseBad is a handler that cannot do the events whose ID begins with bad.
func RefuseBad(ctx context.Context, tx pgx.Tx, n *Note) error {
	if strings.HasPrefix(n.ID, "bad") {
		return idem.NoRetry(errors.New("no such order"))
	}
	return Pay(ctx, tx, n)
}

// Fixable is an application whose handler is [RefuseBad] until it is fixed, and what it has done after that.
type Fixable struct {
	Fixed atomic.Bool

	mu   sync.Mutex
	done []string
}

// Handle is the handler.
func (f *Fixable) Handle(ctx context.Context, tx pgx.Tx, n *Note) error {
	if !f.Fixed.Load() {
		return RefuseBad(ctx, tx, n)
	}
	idem.AfterCommit(ctx, func(context.Context) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.done = append(f.done, n.ID)
	})
	return Pay(ctx, tx, n)
}

// WantDone checks which events were done since it was fixed, in order.
func (f *Fixable) WantDone(t testing.TB, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := gocmp.Diff(want, f.done); diff != "" {
		t.Error("done (-want +got):\n" + diff)
	}
}
