package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// scheme is a way to process an event once.
type scheme struct {
	name    string
	receive func(*delivery) (status int)
	work    func(*delivery) error // of a worker; nil for none. An error means that it is to run again
}

// delivery is a delivery, or a worker's turn, with its fault.
type delivery struct {
	*fault
	pool    *pgxpool.Pool
	id      string
	ctx     context.Context // of the process
	request context.Context // ends when the sender leaves
	leave   func()
}

type db interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// handle is the application's handler. Its effect has two parts, and it may fail between them.
func (r *delivery) handle(ctx context.Context, db db) error {
	const effect = `insert into ledger values ($1, $2)`
	if _, err := db.Exec(ctx, effect, r.id, 1); err != nil {
		return err
	}
	r.step()
	if r.leaves {
		r.leave()
	}
	if r.fails && !r.over {
		r.over = true
		return errors.New("the handler fails")
	}
	_, err := db.Exec(ctx, effect, r.id, 2)
	r.step()
	return err
}

// isNew inserts the event's id into a table, and returns false if it is there.
func (r *delivery) isNew(ctx context.Context, db db, insert string) (bool, error) {
	tag, err := db.Exec(ctx, insert, r.id)
	return err == nil && tag.RowsAffected() == 1, err
}

func answer(err error) int {
	if err != nil {
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

func schemes(pool *pgxpool.Pool) []scheme {
	return append([]scheme{
		{name: "Asaas's guide, 1: store, answer, and have a job work", receive: storeFirst, work: workQueue},
		{name: "Asaas's guide, 2: store the id, then work", receive: idFirst},
		{name: "Zelta Pay's guide: the id first", receive: idFirst},
		{name: "Zelta Pay's guide: a transaction, and 200 in any case", receive: transactionAnd200},
		{name: "Zelta Pay's guide: a lock and a marker in Redis", receive: new(redis).receive},
		{name: "Zelta Pay's guide: a marker in KV, then work", receive: new(redis).receiveKV},
		{name: "Idempotency keys, as for requests", receive: keys},
		{name: "By hand in Go: one transaction, on the request's context", receive: oneTransaction},
	}, ours(pool)...)
}

const (
	insertSeen  = `insert into seen values ($1) on conflict do nothing`
	insertQueue = `insert into queue (event) values ($1) on conflict do nothing`
	insertKey   = `insert into keys (event) values ($1) on conflict do nothing`
)

// storeFirst answers once the event is in a table. A job works on its rows.
func storeFirst(r *delivery) int {
	_, err := r.isNew(r.ctx, r.pool, insertQueue)
	r.step()
	return answer(err)
}

// workQueue works on events that are not done, and then marks them.
func workQueue(r *delivery) error {
	var waits bool
	if err := r.pool.QueryRow(r.ctx, `select exists (select from queue where event = $1 and not done)`, r.id).Scan(&waits); err != nil || !waits {
		return err
	}
	r.meet()
	if err := r.handle(r.ctx, r.pool); err != nil {
		return err
	}
	_, err := r.pool.Exec(r.ctx, `update queue set done = true where event = $1`, r.id)
	r.step()
	return err
}

// idFirst stores the id, and takes an event with a stored id for done.
func idFirst(r *delivery) int {
	isNew, err := r.isNew(r.ctx, r.pool, insertSeen)
	if err != nil || !isNew {
		return answer(err)
	}
	r.step()
	return answer(r.handle(r.ctx, r.pool))
}

// transactionAnd200 stores the id and works in one transaction, and answers 200, with any result that
// comes of it.
func transactionAnd200(r *delivery) int {
	_ = inTransaction(r.ctx, r)
	return http.StatusOK
}

// oneTransaction is the same with an honest answer, on a context that ends when the sender
// leaves, as net/http has it.
func oneTransaction(r *delivery) int { return answer(inTransaction(r.request, r)) }

func inTransaction(ctx context.Context, r *delivery) error {
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		isNew, err := r.isNew(ctx, tx, insertSeen)
		if err != nil || !isNew {
			return err
		}
		r.step()
		return r.handle(ctx, tx)
	})
}

// redis is a store without transactions, which outlives the process. No key expires.
type redis struct{ sync.Map }

// receive takes a lock, works, and leaves a marker. An event that is locked passes for a
// duplicate.
func (s *redis) receive(r *delivery) int {
	if _, done := s.Load("done " + r.id); done {
		return http.StatusOK
	}
	if _, locked := s.LoadOrStore("lock "+r.id, true); locked {
		return http.StatusOK
	}
	r.step()
	err := r.handle(r.ctx, r.pool)
	if err == nil {
		s.Store("done "+r.id, true)
	}
	s.Delete("lock " + r.id)
	return answer(err)
}

// receiveKV looks, leaves a marker, and works.
func (s *redis) receiveKV(r *delivery) int {
	_, found := s.Load(r.id)
	r.meet()
	if found {
		return http.StatusOK
	}
	s.Store(r.id, true)
	r.step()
	return answer(r.handle(r.ctx, r.pool))
}

// keys answers a key that is known as the first time, even if that was an error. Work that a
// process that died had begun is begun again.
func keys(r *delivery) int {
	isNew, err := r.isNew(r.request, r.pool, insertKey)
	if err != nil {
		return answer(err)
	}
	if !isNew {
		var status *int
		if err := r.pool.QueryRow(r.request, `select status from keys where event = $1`, r.id).Scan(&status); err != nil {
			return answer(err)
		}
		switch {
		case status != nil:
			return *status
		case !r.over: // another process works on it
			return http.StatusConflict
		}
	}
	r.step()
	err = r.handle(r.request, r.pool)
	_, _ = r.pool.Exec(r.request, `update keys set status = $2 where event = $1`, r.id, answer(err))
	r.step()
	return answer(err)
}

// ours returns the schemes of this module.
func ours(pool *pgxpool.Pool) []scheme {
	var all sync.Map // deliveries, by the event's id
	events := asaas.NewDispatcher()
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		found, _ := all.Load(e.ID)
		r := found.(*delivery)
		killed := true
		defer func() {
			if killed {
				_ = tx.Conn().Close(ctx) // as the end of a process closes it
			}
		}()
		r.step()
		err := r.handle(ctx, tx)
		killed = false
		return err
	})
	processor, inbox := idem.NewProcessor(pool, events), idem.NewInbox(pool, events)
	processor.Logger, inbox.Logger, inbox.Backoff = nil, nil, func(int) time.Duration { return 0 }
	return []scheme{
		{name: "idem.Processor", receive: func(r *delivery) int {
			all.Store(r.id, r)
			_, err := processor.Accept(r.request, r.event())
			return answer(err)
		}},
		{name: "idem.Inbox", receive: func(r *delivery) int {
			_, err := inbox.Accept(r.request, r.event())
			r.step()
			return answer(err)
		}, work: func(r *delivery) error {
			all.Store(r.id, r)
			return inbox.Drain(r.ctx)
		}},
	}
}

// event is an event that this module receives.
func (r *delivery) event() idem.Event {
	return asaas.Identify([]byte(`{"id":"` + r.id + `","event":"PAYMENT_RECEIVED","payment":{"id":"pay_` + r.id + `","value":29.90,"status":"RECEIVED"}}`))
}
