package guides

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

// scheme is a way to process an event once. Those of the guides are written anew, in Go and without their mistakes of
// detail: they lose by their order of steps.
type scheme struct {
	name    string
	receive func(*delivery) (status int)
	work    func(*delivery) error // of a worker; nil for none. An error means that it is to run again
}

// delivery is a delivery, or a worker's turn, with its fault.
type delivery struct {
	*fault
	pool    *pgxpool.Pool
	marks   *sync.Map // what is stored outside of the work's transaction: it outlives the process
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

// put stores a mark of the event, and reports whether it is new.
func (r *delivery) put(mark string, value any) bool {
	_, found := r.marks.LoadOrStore(mark+r.id, value)
	r.step()
	return !found
}

func (r *delivery) has(mark string) bool {
	_, found := r.marks.Load(mark + r.id)
	return found
}

func answer(err error) int {
	if err != nil {
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

func schemes(pool *pgxpool.Pool) []scheme {
	return append([]scheme{
		{name: "Asaas's guide, 1: store, answer, and have a job work", receive: store, work: workStored},
		{name: "Asaas's guide, 2: store the id, then work", receive: idFirst},
		{name: "Zelta Pay's guide: the id first", receive: idFirst},
		{name: "Zelta Pay's guide: a transaction, and 200 in any case", receive: transactionAnd200},
		{name: "Zelta Pay's guide: a lock and a marker in Redis", receive: lockAndMarker},
		{name: "Zelta Pay's guide: a marker in KV, then work", receive: lookThenMark},
		{name: "Idempotency keys, as for requests", receive: keys},
		{name: "By hand in Go: one transaction, on the request's context", receive: oneTransaction},
	}, ours(pool)...)
}

// store answers once the event is in a table. A job works on its rows.
func store(r *delivery) int {
	r.put("stored", true)
	return http.StatusOK
}

// workStored works on events that are not done, and then marks them.
func workStored(r *delivery) error {
	if !r.has("stored") || r.has("done") {
		return nil
	}
	r.meet()
	err := r.handle(r.ctx, r.pool)
	if err == nil {
		r.put("done", true)
	}
	return err
}

// idFirst stores the id, and takes an event with a stored id for done.
func idFirst(r *delivery) int {
	if !r.put("seen", true) {
		return http.StatusOK
	}
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
		added, err := tx.Exec(ctx, `insert into seen values ($1) on conflict do nothing`, r.id)
		if err != nil || added.RowsAffected() == 0 {
			return err
		}
		r.step()
		return r.handle(ctx, tx)
	})
}

// lockAndMarker takes a lock, works, and leaves a marker. An event that is locked passes for a
// duplicate. No lock expires.
func lockAndMarker(r *delivery) int {
	if r.has("done") || !r.put("lock", true) {
		return http.StatusOK
	}
	err := r.handle(r.ctx, r.pool)
	if err == nil {
		r.put("done", true)
	}
	r.marks.Delete("lock" + r.id)
	return answer(err)
}

// lookThenMark looks, leaves a marker, and works.
func lookThenMark(r *delivery) int {
	done := r.has("done")
	r.meet()
	if done {
		return http.StatusOK
	}
	r.put("done", true)
	return answer(r.handle(r.ctx, r.pool))
}

// keys answers a key that is known as the first time, even if that was an error. Work that a
// process that died had begun is begun again.
func keys(r *delivery) int {
	if !r.put("key", true) {
		status, known := r.marks.Load("status" + r.id)
		switch {
		case known:
			return status.(int)
		case !r.over: // another process works on it
			return http.StatusConflict
		}
	}
	status := answer(r.handle(r.request, r.pool))
	r.put("status", status)
	return status
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
	first, inbox := idem.NewInbox(pool, events), idem.NewInbox(pool, events)
	first.WorkFirst = true
	first.Logger, inbox.Logger, inbox.Backoff = nil, nil, func(int) time.Duration { return 0 }
	return []scheme{
		{name: "WorkFirst", receive: func(r *delivery) int {
			all.Store(r.id, r)
			_, err := first.Accept(r.request, r.event())
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
