package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// contender is one implementation in the comparison.
type contender struct {
	*receiver
	mode    string
	wire    *wire                       // nil if it is not ours
	books   *pgxpool.Pool               // the database with its effects; nil if that is not known
	query   string                      // of its effects
	settle  func(context.Context) error // waits until all is worked on; nil where answers come after that
	finish  func(context.Context) error // does that at last, before the books are compared; or nil
	end     func() error
	late    time.Duration // how long effects may follow the answers
	account account
}

// against is the mode of an implementation that is not ours.
const against = "against"

const (
	ordersQuery = `select charge, payments, cents from orders where payments <> 0`
	storedQuery = `
select event #>> '{payment,id}', count(*), sum((event #>> '{payment,value}')::numeric * 100)::bigint
from (select convert_from(body, 'UTF8')::jsonb as event from stored) s group by 1`
)

// token is the token that our contenders expect.
const token = "the token of the bench"

// enter makes a contender of a mode, which serves until its end is called.
func enter(ctx context.Context, mode string, d *database, e *events, c *config) (*contender, error) {
	if mode == against {
		return enterOther(ctx, d, e, c)
	}
	s, err := d.newSchema(ctx, e, mode, c)
	if err != nil {
		return nil, err
	}
	if err := idem.Migrate(ctx, s.pool); err != nil {
		return nil, errors.Join(err, s.drop(ctx))
	}
	one := &contender{mode: mode, wire: s.wire, books: s.pool, query: ordersQuery}
	handler, stop := one.serve(s.pool)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, stop(), s.drop(ctx))
	}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	one.receiver = newReceiver("http://"+listener.Addr().String(), token, e, &c.provider)
	one.end = func() error { return errors.Join(server.Close(), stop(), s.drop(ctx)) }
	return one, nil
}

// enterOther makes a contender of a server elsewhere.
func enterOther(ctx context.Context, d *database, e *events, c *config) (*contender, error) {
	one := &contender{mode: against, query: c.ledger, late: c.late, end: func() error { return nil }}
	one.receiver = newReceiver(c.against, c.token, e, &c.provider)
	if c.ledger == "" {
		return one, nil
	}
	var err error
	if one.books, err = pgxpool.New(ctx, d.url); err != nil {
		return nil, err
	}
	one.end = func() error { one.books.Close(); return nil }
	return one, nil
}

// serve returns the contender's handler, and a function that ends the rest of it.
func (one *contender) serve(pool *pgxpool.Pool) (h http.Handler, stop func() error) {
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		return book(ctx, tx, e.Payment.ID, e.Payment.Value.Cents())
	})
	stop = func() error { return nil }
	switch one.mode {
	case "inline":
		h = idem.NewProcessor(pool, events)
	case "inbox", "ingest":
		inbox := idem.NewInbox(pool, events)
		h = inbox
		stop = one.workLater(func(ctx context.Context, done func()) error {
			inbox.Observe = func(_ context.Context, o idem.Observation) {
				if o.Outcome == idem.Done {
					done()
				}
			}
			return inbox.Run(ctx)
		})
	case "hand":
		h = handWritten{pool, token, fourTrips}
	case "hand3":
		h = handWritten{pool, token, threeTrips}
	case "naive":
		n, workers := newNaive(pool), idem.NewInbox(pool, events).Workers
		h = n
		stop = one.workLater(func(ctx context.Context, done func()) error { return n.run(ctx, workers, done) })
	case "insert":
		h, one.query = oneInsert{pool, token, nil}, storedQuery
	}
	return h, stop
}

// workLater has workers run, now or in the end, and the contender wait for them.
// They call done for each event. It returns a function that stops them.
func (one *contender) workLater(workers func(ctx context.Context, done func()) error) (stop func() error) {
	var worked atomic.Int64
	progress := make(chan struct{}, 1)
	done := func() {
		worked.Add(1)
		select {
		case progress <- struct{}{}:
		default:
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ended <- nil
	run := func() {
		<-ended
		go func() { ended <- workers(ctx, done) }()
	}
	settle := func(ctx context.Context) error { return one.await(ctx, &worked, progress) }
	if one.mode != "ingest" {
		run()
		one.settle = settle
	} else {
		one.finish = func(ctx context.Context) error { run(); return settle(ctx) }
	}
	return func() error { cancel(); return <-ended }
}

// stuck is the time after which idle workers are given up.
const stuck = time.Minute

// await waits until as many events are worked on as were acknowledged.
func (one *contender) await(ctx context.Context, worked *atomic.Int64, progress <-chan struct{}) error {
	for worked.Load() < one.acknowledged.Load() {
		select {
		case <-progress:
		case <-time.After(stuck):
			return fmt.Errorf("%s: the workers have done %d of %d acknowledged events, and none for %s", one.mode, worked.Load(), one.acknowledged.Load(), stuck)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
