package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
)

// handEvent is an event as a receiver written by hand decodes it: the fields that the
// handler needs.
type handEvent struct {
	ID      string `json:"id"`
	Event   string `json:"event"`
	Payment struct {
		ID    string  `json:"id"`
		Value float64 `json:"value"`
	} `json:"payment"`
}

func (e *handEvent) book(ctx context.Context, tx pgx.Tx) error {
	return book(ctx, tx, e.Payment.ID, int64(math.Round(e.Payment.Value*100)))
}

// book is the work, the same for all.
func book(ctx context.Context, tx pgx.Tx, charge string, cents int64) error {
	tag, err := tx.Exec(ctx, `update orders set payments = payments + 1, cents = cents + $2 where charge = $1`, charge, cents)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("there is no order of %s", charge)
	}
	return err
}

// handWritten is a receiver that a good engineer writes on pgx; do is the transaction.
type handWritten struct {
	pool  *pgxpool.Pool
	token string
	do    func(ctx context.Context, pool *pgxpool.Pool, e *handEvent) error
}

func (h handWritten) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, _, ok := receive(w, r, h.token)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 8*time.Second)
	defer cancel()
	answer(w, h.do(ctx, h.pool, e))
}

const insertProcessed = `insert into processed (id) values ($1) on conflict do nothing`

// fourTrips is the usual way: BEGIN; INSERT … ON CONFLICT DO NOTHING; UPDATE; COMMIT.
func fourTrips(ctx context.Context, pool *pgxpool.Pool, e *handEvent) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, insertProcessed, e.ID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return e.book(ctx, tx)
	})
}

// threeTrips is the fewest that a pgx.Tx for the work allows: BEGIN and INSERT go
// together.
func threeTrips(ctx context.Context, pool *pgxpool.Pool, e *handEvent) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{})
	b.Queue(insertProcessed, e.ID)
	results := conn.SendBatch(ctx, b)
	tx := results.Tx()
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := results.Exec(); err != nil {
		return errors.Join(err, results.Close())
	}
	tag, err := results.Exec()
	if err := errors.Join(err, results.Close()); err != nil || tag.RowsAffected() == 0 {
		return err
	}
	if err := e.book(ctx, tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// oneInsert is the way of a good engineer to store events first: one committed
// INSERT for each request.
type oneInsert struct {
	pool   *pgxpool.Pool
	token  string
	stored chan<- struct{} // gets an element for each row; nil if they are not waited for
}

func (h oneInsert) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, body, ok := receive(w, r, h.token)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 8*time.Second)
	defer cancel()
	tag, err := h.pool.Exec(ctx, `insert into stored (id, body) values ($1, $2) on conflict do nothing`, e.ID, body)
	answer(w, err)
	if tag.RowsAffected() > 0 && h.stored != nil {
		h.stored <- struct{}{}
	}
}

func receive(w http.ResponseWriter, r *http.Request, token string) (e *handEvent, body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil || asaas.Verify(r.Header, body, token) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return nil, nil, false
	}
	e = new(handEvent)
	if err := json.Unmarshal(body, e); err != nil || e.Event != string(asaas.EventPaymentReceived) {
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
