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
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
)

// token is the token that the contenders expect.
const token = "the token of the bench"

// contender is one implementation in the comparison. It works in a schema of its own.
type contender struct {
	*sender
	mode    string
	pool    *pgxpool.Pool // over the wire
	admin   *pgx.Conn     // of the bench itself
	wire    *wire
	stores  bool                        // it only stores
	newest  bool                        // of each charge only the newest event has an effect
	effects string                      // a query of its payments and their cents
	settle  func(context.Context) error // waits until all is worked on
	finish  func(context.Context) error // does the work at last, before the ledgers are compared
	end     func() error
}

// tables has those that the implementations and their work need beside idem's and River's own.
const tables = `
create table orders (charge text primary key, payments bigint not null default 0, cents bigint not null default 0) with (fillfactor = 50);
create table processed (id text primary key, received_at timestamptz not null default now());
create table stored (id text primary key, state text not null default 'pending', received_at timestamptz not null default now(), body bytea not null);
create index on stored (received_at) where state = 'pending'`

const (
	bookedEffects = `select coalesce(sum(payments), 0)::bigint, coalesce(sum(cents), 0)::bigint from orders`
	storedEffects = `
select count(*), coalesce(sum((convert_from(body, 'UTF8')::jsonb #>> '{payment,value}')::numeric * 100), 0)::bigint from stored`
)

// enter makes a contender of a mode, in a new schema with an order for each charge. It serves until its end is
// called.
func (c *config) enter(ctx context.Context, url, mode, run string) (one *contender, err error) {
	nothing := func(context.Context) error { return nil }
	one = &contender{mode: mode, effects: bookedEffects, settle: nothing, finish: nothing, wire: &wire{delay: c.rtt}}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	schema := "paghooks_bench_" + run + "_" + mode
	config.ConnConfig.RuntimeParams["search_path"] = schema
	if one.admin, err = pgx.ConnectConfig(ctx, config.ConnConfig.Copy()); err != nil {
		return nil, err
	}
	one.end = func() error {
		_, err := one.admin.Exec(context.WithoutCancel(ctx), `drop schema if exists `+schema+` cascade`)
		return errors.Join(err, one.admin.Close(context.WithoutCancel(ctx)))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, one.end())
		}
	}()
	if _, err = one.admin.Exec(ctx, `create schema `+schema+`; `+tables); err != nil {
		return nil, err
	}
	if _, err = one.admin.Exec(ctx, `insert into orders select $1 || n from generate_series(0, $2::int - 1) n`, "pay_"+run+"_", chargeCount); err != nil {
		return nil, err
	}
	config.MaxConns = int32(c.conns)
	config.ConnConfig.DialFunc = one.wire.dialer(config.ConnConfig.DialFunc)
	if one.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	one.before(func() error { one.pool.Close(); return nil })
	handler, err := one.open(ctx)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	one.before(server.Close)
	one.sender = &sender{
		url: "http://" + listener.Addr().String(), events: newEvents(run),
		client: &http.Client{Transport: &http.Transport{MaxIdleConns: 2 * c.at, MaxIdleConnsPerHost: 2 * c.at}, Timeout: 10 * time.Second},
	}
	return one, nil
}

// before has the contender's end do something first.
func (one *contender) before(first func() error) {
	rest := one.end
	one.end = func() error { return errors.Join(first(), rest()) }
}

// open returns the contender's handler, and starts its workers.
func (one *contender) open(ctx context.Context) (http.Handler, error) {
	switch one.mode {
	case "first", "ingest", "inbox":
		if err := idem.Migrate(ctx, one.pool); err != nil {
			return nil, err
		}
		events := asaas.NewDispatcher(token)
		events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
			return book(ctx, tx, e.Payment.ID, e.Payment.Value.Cents())
		})
		inbox := idem.NewInbox(one.pool, events)
		inbox.WorkFirst = one.mode == "first"
		if one.mode == "ingest" {
			one.stores, one.finish = true, inbox.Drain
		} else {
			one.works(inbox.Run)
		}
		return inbox, nil
	case "charges", "upsert":
		if err := one.copies(ctx); err != nil {
			return nil, err
		}
		if one.mode == "upsert" {
			return copyByHand(one.pool), nil
		}
		events := asaas.NewDispatcher(token)
		events.OnPayment(charges.Handler(changed))
		inbox := idem.NewInbox(one.pool, events)
		inbox.WorkFirst = true
		one.works(inbox.Run)
		return inbox, nil
	case "insert":
		one.stores, one.effects = true, storedEffects
		return oneInsert(one.pool, nil), nil
	case "naive":
		stored, workers := make(chan struct{}, 1<<20), idem.NewInbox(one.pool, asaas.NewDispatcher(token)).Workers
		one.works(func(ctx context.Context) error { return runNaive(ctx, one.pool, workers, stored) })
		return oneInsert(one.pool, stored), nil
	case "river":
		jobs, err := newRiver(ctx, one.pool)
		if err != nil {
			return nil, err
		}
		one.works(jobs.run)
		return receive(jobs.insert), nil
	}
	return byHand(one.pool), nil
}

// works runs workers until the contender's end, and has turns wait for what they do.
func (one *contender) works(run func(context.Context) error) {
	one.settle = one.allBooked
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	one.before(func() error { cancel(); return <-ended })
}

// allBooked waits until each acknowledged event has an effect, for a minute at most: the ledgers say the rest.
func (one *contender) allBooked(ctx context.Context) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var payments, cents int64
		if err := one.admin.QueryRow(ctx, one.effects).Scan(&payments, &cents); err != nil || payments >= one.payments.Load() {
			return err
		}
	}
	return nil
}

// compare returns an error if the contender's effects are not those of the acknowledged events.
func (one *contender) compare(ctx context.Context) error {
	if err := one.finish(ctx); err != nil {
		return err
	}
	if n := one.lost.Load(); n > 0 {
		return fmt.Errorf("%s: %d events were never acknowledged", one.mode, n)
	}
	want, sum := one.payments.Load(), one.cents.Load()
	if one.newest {
		sum = sumOfNewest(one.last.Load())
	}
	var payments, cents int64
	if err := one.admin.QueryRow(ctx, one.effects).Scan(&payments, &cents); err != nil {
		return fmt.Errorf("%s: reading its effects: %w", one.mode, err)
	}
	if payments != want || cents != sum {
		return fmt.Errorf("%s has lost or doubled payments: %d of %d cents were acknowledged, the database has %d of %d cents", one.mode, want, sum, payments, cents)
	}
	return nil
}

// sumOfNewest returns the cents of the newest event of each charge.
func sumOfNewest(last int64) (sum int64) {
	for n := last; n > max(0, last-chargeCount); n-- {
		sum += cents(n)
	}
	return sum
}

// book does the work, which is the same for all.
func book(ctx context.Context, tx pgx.Tx, charge string, cents int64) error {
	tag, err := tx.Exec(ctx, `update orders set payments = payments + 1, cents = cents + $2 where charge = $1`, charge, cents)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("there is no order of %s", charge)
	}
	return err
}

// wire lies between an implementation and Postgres: it counts round trips, and makes each take longer.
type wire struct {
	delay time.Duration
	trips atomic.Int64
}

func (w *wire) dialer(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &tripConn{Conn: conn, wire: w}, err
	}
}

// tripConn is a connection on the wire. A round trip is a write, in one piece or several, until the
// next read.
type tripConn struct {
	net.Conn
	wire *wire
	sent atomic.Bool
}

func (c *tripConn) Write(p []byte) (int, error) {
	c.sent.Store(true)
	return c.Conn.Write(p)
}

func (c *tripConn) Read(p []byte) (int, error) {
	if c.sent.Swap(false) {
		c.wire.trips.Add(1)
		time.Sleep(c.wire.delay)
	}
	return c.Conn.Read(p)
}
