package brokertest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// note is an event of the provider that these tests invent.
type note struct {
	ID    string    `json:"id"`
	Type  string    `json:"type"` // "paid"; "poison": its handler always fails
	Order string    `json:"order"`
	N     int       `json:"n"` // its place among the order's events
	At    time.Time `json:"at"`
	Text  string    `json:"text,omitempty"`
}

func (n note) body() []byte {
	body, err := json.Marshal(n)
	if err != nil {
		panic(err) // texts and numbers
	}
	return body
}

const (
	token  = "right"
	secret = "0123456789abcdef0123456789abcdef" // of the relay
)

// provider is the source of notes. All of them have an effect in the ledger.
type provider struct {
	idem.Routes
	pay func(context.Context, pgx.Tx, *note) error // before the effect; may be nil
}

func newProvider(pay func(context.Context, pgx.Tx, *note) error) *provider {
	p := &provider{pay: pay}
	idem.Handle(&p.Routes, "paid", p.book)
	idem.Handle(&p.Routes, "poison", func(context.Context, pgx.Tx, *note) error { return errors.New("poison") })
	return p
}

// book has the one effect of an event.
func (p *provider) book(ctx context.Context, tx pgx.Tx, n *note) error {
	if p.pay != nil {
		if err := p.pay(ctx, tx, n); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `insert into ledger (event, entity, n) values ($1, $2, $3)`, n.ID, n.Order, n.N)
	return err
}

// Name implements [idem.Source].
func (*provider) Name() string { return "notes" }

// Open implements [idem.Source].
func (*provider) Open(r *http.Request) (idem.Event, error) {
	if r.Header.Get("token") != token {
		return idem.Event{}, &idem.Refusal{Source: "notes", Reason: "wrong_token", Hint: "send the right token"}
	}
	body, err := idem.ReadBody(r)
	if err != nil {
		return idem.Event{}, err
	}
	n := new(note)
	if err := json.Unmarshal(body, n); err != nil {
		return idem.Event{}, err
	}
	return idem.Event{Source: "notes", Scope: "shop", ID: n.ID, Type: n.Type, Key: n.Order, OccurredAt: n.At, Payload: body}, nil
}
