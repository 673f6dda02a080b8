package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
)

// pay is the work, the same for all.
func pay(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	tag, err := tx.Exec(ctx, `update orders set payments = payments + 1, cents = cents + $2 where charge = $1`, e.Payment.ID, e.Payment.Value.Cents())
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("there is no order of %s", e.Payment.ID)
	}
	return err
}

// handWritten is what a good engineer writes on pgx, in the four round trips
// that pgx.Tx takes: BEGIN; INSERT … ON CONFLICT DO NOTHING; UPDATE; COMMIT. It
// verifies and decodes as the others do, so that only the rest is compared.
type handWritten struct {
	pool  *pgxpool.Pool
	token string
}

func (h handWritten) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, _, ok := receive(w, r, h.token)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 8*time.Second)
	defer cancel()
	answer(w, pgx.BeginFunc(ctx, h.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `insert into processed (id) values ($1) on conflict do nothing`, e.ID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return pay(ctx, tx, e)
	}))
}

// oneInsert is what a good engineer writes to store events first: one committed
// INSERT for each request. Nobody works on them.
type oneInsert struct {
	pool  *pgxpool.Pool
	token string
}

func (h oneInsert) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, body, ok := receive(w, r, h.token)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 8*time.Second)
	defer cancel()
	_, err := h.pool.Exec(ctx, `insert into stored (id, body) values ($1, $2) on conflict do nothing`, e.ID, body)
	answer(w, err)
}

func receive(w http.ResponseWriter, r *http.Request, token string) (e *asaas.PaymentEvent, body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil || asaas.Verify(r.Header, body, token) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return nil, nil, false
	}
	event, err := asaas.Parse(body)
	if e, ok = event.(*asaas.PaymentEvent); err != nil || !ok {
		w.WriteHeader(http.StatusBadRequest)
		return nil, nil, false
	}
	return e, body, true
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"received":true}`)
}
