package main

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// onWire connects to Postgres over a wire.
func onWire(t *testing.T, w *wire) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(idemtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc = w.dialer(config.DialFunc)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func TestRoundTripsAreCountedOnTheWire(t *testing.T) {
	t.Parallel()
	w := &wire{}
	conn := onWire(t, w)
	trips := func(f func(tx pgx.Tx) error) int64 {
		before := w.trips.Load()
		if err := pgx.BeginFunc(t.Context(), conn, f); err != nil {
			t.Fatal(err)
		}
		return w.trips.Load() - before
	}
	ask := func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `select $1::int`, 1)
		return err
	}
	batch := func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`select $1::int`, 1)
		b.Queue(`select $1::int`, 2)
		return tx.SendBatch(t.Context(), b).Close()
	}
	trips(ask) // prepares the statement
	if got := trips(ask); got != 3 {
		t.Errorf("begin, a statement and commit are %d round trips", got)
	}
	if got := trips(batch); got != 3 {
		t.Errorf("begin, two statements together and commit are %d round trips", got)
	}
}

func TestADelayIsAddedToEachRoundTrip(t *testing.T) {
	t.Parallel()
	w := &wire{delay: 5 * time.Millisecond}
	conn := onWire(t, w)
	before, start := w.trips.Load(), time.Now()
	for range 5 {
		if _, err := conn.Exec(t.Context(), `select 1`); err != nil {
			t.Fatal(err)
		}
	}
	if took, trips := time.Since(start), w.trips.Load()-before; took < time.Duration(trips)*w.delay || trips < 5 {
		t.Errorf("%d round trips took %s", trips, took)
	}
}
