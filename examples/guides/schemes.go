package main

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// scheme is a way to process an event once.
type scheme struct {
	name    string
	receive func(*delivery) (status int)
	work    func(*delivery) error // of a worker; nil for none. An error means that it is to run again
}

// delivery is a delivery, or a worker's turn, with its fault.
type delivery struct {
	ctx     context.Context // of the process
	request context.Context // ends when the sender leaves
	leave   func()
	id      string
	fault   *fault
	pool    *pgxpool.Pool
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
	if err := r.fault.step(); err != nil {
		return err
	}
	if r.fault.leaves {
		r.leave()
	}
	if r.fault.fails && !r.fault.over {
		r.fault.over = true
		return errFailed
	}
	_, err := db.Exec(ctx, effect, r.id, 2)
	return errors.Join(err, r.fault.step())
}

// meet has two processes do their next step at the same time.
func (r *delivery) meet() {
	if meet := r.fault.meet; meet != nil {
		r.fault.meet = nil
		meet()
	}
}

// isNew inserts the event's id into a table, and returns false if it is there.
func (r *delivery) isNew(ctx context.Context, db db, insert string) (bool, error) {
	tag, err := db.Exec(ctx, insert, r.id)
	return err == nil && tag.RowsAffected() == 1, err
}

// answer is 200 without an error. A process that is killed does not answer.
func answer(err error) int {
	switch {
	case errors.Is(err, errKilled):
		return 0
	case err != nil:
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

func schemes(pool *pgxpool.Pool) []scheme {
	return []scheme{
		{name: "Asaas's guide, 1: store, answer, and have a job work", receive: storeFirst, work: workQueue},
		{name: "Asaas's guide, 2: store the id, then work", receive: idFirst},
		{name: "Zelta Pay's guide: the id first", receive: idFirst},
		{name: "Zelta Pay's guide: a transaction, and 200 in any case", receive: transactionAnd200},
		{name: "Zelta Pay's guide: a lock and a marker in Redis", receive: (&redis{held: make(map[string]bool)}).receive},
		{name: "Zelta Pay's guide: a marker in KV, then work", receive: (&redis{held: make(map[string]bool)}).receiveKV},
		{name: "Idempotency keys, as for requests", receive: keys},
		{name: "By hand in Go: one transaction, on the request's context", receive: oneTransaction},
		{name: "idem.Processor", receive: newProcessor(pool)},
		inbox(pool),
	}
}

const (
	insertSeen  = `insert into seen values ($1) on conflict do nothing`
	insertQueue = `insert into queue (event) values ($1) on conflict do nothing`
	insertKey   = `insert into keys (event) values ($1) on conflict do nothing`
)

// storeFirst answers once the event is in a table. A job works on its rows.
func storeFirst(r *delivery) int {
	_, err := r.isNew(r.ctx, r.pool, insertQueue)
	return answer(errors.Join(err, r.fault.step()))
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
	return errors.Join(err, r.fault.step())
}

// idFirst stores the id, and takes an event with a stored id for done.
func idFirst(r *delivery) int {
	isNew, err := r.isNew(r.ctx, r.pool, insertSeen)
	if err != nil || !isNew {
		return answer(err)
	}
	if err := r.fault.step(); err != nil {
		return answer(err)
	}
	return answer(r.handle(r.ctx, r.pool))
}

// transactionAnd200 stores the id and works in one transaction, and answers 200, with any result that
// comes of it.
func transactionAnd200(r *delivery) int {
	err := inTransaction(r.ctx, r)
	if errors.Is(err, errKilled) {
		return answer(err)
	}
	return http.StatusOK
}

func inTransaction(ctx context.Context, r *delivery) error {
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		isNew, err := r.isNew(ctx, tx, insertSeen)
		if err != nil || !isNew {
			return err
		}
		return errors.Join(r.fault.step(), r.handle(ctx, tx))
	})
}

// oneTransaction is the same with an honest answer, on a context that ends when the sender
// leaves, as net/http has it.
func oneTransaction(r *delivery) int { return answer(inTransaction(r.request, r)) }

// redis is a store without transactions, which outlives the process. No time passes in it.
type redis struct {
	mu   sync.Mutex
	held map[string]bool
}

func (s *redis) get(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[key]
}

// set reports whether the key was there before.
func (s *redis) set(key string, value bool) (before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.held[key] = s.held[key], value
	return before
}

// receive takes a lock, works, and leaves a marker. An event that is locked passes for a
// duplicate.
func (s *redis) receive(r *delivery) int {
	if s.get("done " + r.id) {
		return http.StatusOK
	}
	if s.set("lock "+r.id, true) {
		return http.StatusOK
	}
	if err := r.fault.step(); err != nil {
		return answer(err)
	}
	err := r.handle(r.ctx, r.pool)
	if errors.Is(err, errKilled) {
		return answer(err)
	}
	if err == nil {
		s.set("done "+r.id, true)
	}
	s.set("lock "+r.id, false)
	return answer(err)
}

// receiveKV looks, leaves a marker, and works.
func (s *redis) receiveKV(r *delivery) int {
	found := s.get(r.id)
	r.meet()
	if found {
		return http.StatusOK
	}
	s.set(r.id, true)
	if err := r.fault.step(); err != nil {
		return answer(err)
	}
	return answer(r.handle(r.ctx, r.pool))
}

// keys answers a key that is known as the first time, also if that was an error. Work that a
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
		case !r.fault.over: // somebody works on it
			return http.StatusConflict
		}
	}
	if err := r.fault.step(); err != nil {
		return answer(err)
	}
	err = r.handle(r.request, r.pool)
	if errors.Is(err, errKilled) {
		return answer(err)
	}
	_, _ = r.pool.Exec(r.request, `update keys set status = $2 where event = $1`, r.id, answer(err))
	return answer(errors.Join(err, r.fault.step()))
}
