package asaas_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/postgres"
)

// BenchmarkDecode is what an event costs before its transaction begins, on the
// largest body of testdata: naming it, parsing it, and what a delivery costs,
// which is named and then decoded for its handler.
func BenchmarkDecode(b *testing.B) {
	body := testdata(b, "partially_refunded_with_split")
	for _, bench := range []struct {
		name string
		run  func() error
	}{
		{"Identify", func() error { asaas.Identify(body); return nil }},
		{"Parse", func() error { _, err := asaas.Parse(body); return err }},
		{"Unmarshal", func() error { return json.Unmarshal(body, new(asaas.PaymentEvent)) }},
		{"Identify+Unmarshal", func() error {
			return json.Unmarshal(asaas.Identify(body).Payload, new(asaas.PaymentEvent))
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkShareOfDecoding measures how much of an event's way from a POST to
// a commit on a durable Postgres goes into verifying, decoding and dispatching
// it: one delivery after the other, and its handler writes one row.
func BenchmarkShareOfDecoding(b *testing.B) {
	pool := durablePool(b)
	events := asaas.NewDispatcher(token)
	events.OnPaymentConfirmed(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		_, err := tx.Exec(ctx, `update orders set paid = paid + $1 where id = 1`, e.Payment.Value)
		return err
	})
	inbox := idem.NewInbox(pool, events)
	inbox.WorkFirst = true
	body := testdata(b, "card_confirmed_installment")
	more := strings.Repeat("x", 2048-len(body)) // a longer description
	body = bytes.Replace(body, []byte(`"description":"`), []byte(`"description":"`+more), 1)
	var decoding, whole time.Duration
	for i := 0; b.Loop(); i++ {
		// A new event of the same size.
		next := bytes.Replace(body, []byte("&"), []byte("&"+strconv.Itoa(i)), 1)
		r := delivery(token, string(next))

		start := time.Now()
		e, err := events.Open(withBody(r, next))
		if err != nil {
			b.Fatal(err)
		}
		if work, err := events.Route(e); work == nil || err != nil {
			b.Fatal("no handler: ", err)
		}
		decoding += time.Since(start)

		start = time.Now()
		w := httptest.NewRecorder()
		inbox.ServeHTTP(w, r)
		whole += time.Since(start)
		if w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
	b.ReportMetric(float64(decoding.Nanoseconds())/float64(b.N)/1000, "decoding-µs")
	b.ReportMetric(float64(whole.Nanoseconds())/float64(b.N)/1000, "whole-µs")
	b.ReportMetric(100*decoding.Seconds()/whole.Seconds(), "%")
	b.ReportMetric(float64(len(body)), "B/event")
}

func durablePool(b *testing.B) *pgxpool.Pool {
	b.Helper()
	cluster := &postgres.Cluster{Durable: true}
	if err := cluster.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			b.Error(err)
		}
	})
	pool, err := pgxpool.New(b.Context(), cluster.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if err := idem.Migrate(b.Context(), pool); err != nil {
		b.Fatal(err)
	}
	if _, err := pool.Exec(b.Context(), `create table orders (id int primary key, paid numeric not null); insert into orders values (1, 0)`); err != nil {
		b.Fatal(err)
	}
	return pool
}
