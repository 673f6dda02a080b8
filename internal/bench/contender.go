package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// token is the token that the contenders expect.
const token = "the token of the bench"

// contender is one implementation in the comparison.
type contender struct {
	*sender
	*schema
	mode    string
	stores  bool                        // it only stores
	query   string                      // of its effects
	settle  func(context.Context) error // waits until all is worked on
	finish  func(context.Context) error // does the work at last, before the ledgers are compared; or nil
	end     func() error
	account account
}

const (
	ordersQuery = `select charge, payments, cents from orders where payments <> 0`
	storedQuery = `
select event #>> '{payment,id}', count(*), sum((event #>> '{payment,value}')::numeric * 100)::bigint
from (select convert_from(body, 'UTF8')::jsonb as event from stored) s group by 1`
)

// enter makes a contender of a mode, which serves until its end is called.
func (c *config) enter(ctx context.Context, d *database, mode, run string) (*contender, error) {
	events := newEvents(run)
	s, err := d.newSchema(ctx, mode, events, c)
	if err != nil {
		return nil, err
	}
	one := &contender{schema: s, mode: mode, query: ordersQuery, settle: func(context.Context) error { return nil }}
	handler, stop, err := one.open(ctx)
	if err != nil {
		return nil, errors.Join(err, s.drop(ctx))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, stop(), s.drop(ctx))
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	one.sender = &sender{
		url: "http://" + listener.Addr().String(), events: events,
		client: &http.Client{Transport: &http.Transport{MaxIdleConns: 2 * c.at, MaxIdleConnsPerHost: 2 * c.at}, Timeout: 10 * time.Second},
	}
	one.end = func() error { return errors.Join(server.Close(), stop(), s.drop(ctx)) }
	return one, nil
}

// open returns the contender's handler, and a function that ends the rest of it.
func (one *contender) open(ctx context.Context) (h http.Handler, stop func() error, err error) {
	stop = func() error { return nil }
	switch one.mode {
	case "inline", "ingest", "inbox":
		if err := idem.Migrate(ctx, one.pool); err != nil {
			return nil, nil, err
		}
		events := asaas.NewDispatcher(token)
		events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
			return book(ctx, tx, e.Payment.ID, e.Payment.Value.Cents())
		})
		if one.mode == "inline" {
			return idem.NewProcessor(one.pool, events), stop, nil
		}
		inbox := idem.NewInbox(one.pool, events)
		if one.mode == "ingest" {
			one.stores, one.finish = true, inbox.Drain
			return inbox, stop, nil
		}
		return inbox, one.works(inbox.Run), nil
	case "insert":
		one.stores, one.query = true, storedQuery
		return oneInsert{one.pool, nil}, stop, nil
	case "naive":
		stored, workers := make(chan struct{}, 1<<20), idem.NewInbox(one.pool, asaas.NewDispatcher(token)).Workers
		return oneInsert{one.pool, stored}, one.works(func(ctx context.Context) error { return runNaive(ctx, one.pool, workers, stored) }), nil
	case "river":
		jobs, err := newRiver(ctx, one.schema)
		if err != nil {
			return nil, nil, err
		}
		return jobs, one.works(jobs.run), nil
	}
	return byHand{one.pool}, stop, nil
}

// works runs workers, and has turns wait for what they do. It returns a function that stops them.
func (one *contender) works(run func(context.Context) error) (stop func() error) {
	one.settle = one.allBooked
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() error { cancel(); return <-ended }
}

// allBooked waits until each acknowledged event has an effect, for a minute at most: the ledgers say the rest.
func (one *contender) allBooked(ctx context.Context) error {
	want := int64(0)
	for n := range one.booked {
		want += one.booked[n].payments.Load()
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var booked int64
		if err := one.admin.QueryRow(ctx, `select coalesce(sum(payments), 0) from orders`).Scan(&booked); err != nil || booked >= want {
			return err
		}
	}
	return nil
}

// compare returns an error if the contender's effects are not those of the acknowledged events.
func (one *contender) compare(ctx context.Context) error {
	rows, _ := one.admin.Query(ctx, one.query)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[effects])
	if err != nil {
		return fmt.Errorf("%s: reading its effects: %w", one.mode, err)
	}
	if n := one.lost.Load(); n > 0 {
		return fmt.Errorf("%s: %d events were never acknowledged", one.mode, n)
	}
	if all := one.differences(found); len(all) > 0 {
		return fmt.Errorf("%s: %d charges have lost or doubled payments, the first is %s", one.mode, len(all), all[0])
	}
	return nil
}

// book does the work, which is the same for all.
func book(ctx context.Context, tx pgx.Tx, charge string, cents int64) error {
	tag, err := tx.Exec(ctx, `update orders set payments = payments + 1, cents = cents + $2 where charge = $1`, charge, cents)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("there is no order of %s", charge)
	}
	return err
}
