package main

import (
	"context"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// The year is told once for all that is asked of it.
func TestYearEndsWithRightBooks(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	y, err := newYear(t.Context(), idemtest.Pool(t), &out)
	if err != nil {
		t.Fatal(err)
	}
	defer y.end()
	for _, chapter := range story {
		if err := chapter(y, t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
	}
	if err := y.check(t.Context()); err != nil {
		t.Error(err)
	}
	rest := out.String()
	for _, line := range []string{
		"on call: idem list: PAYMENT_RECEIVED of order-early: pending, the order of charge",
		"order-early: paid\n",
		"then each PAYMENT_RECEIVED came again: refunded\n",
		"PAYMENT_RECEIVED came twice: paid\n",
		"2026-12-04 16:54  Asaas stops the queue\n",
		"monitor: webhook fails: the queue is stopped",
		"2026-12-18 04:04  Asaas deletes an event of PAYMENT_RECEIVED for good\n",
		"reconcile: order-holiday-2: missing [PAYMENT_RECEIVED]\n",
		"reconcile: order-holiday-1: missing [PAYMENT_RECEIVED]\n",
		"2 repaired\n",
		"monitor: refused fails:",
		"monitor: refused is well again\n",
		"order-token: paid\n",
		"Friday: a version is deployed whose handlers fail\n",
		"monitor: retrying fails:",
		"monitor: handlers fails: 5 events have failed in a row",
		"on call: idem requeue: 8 events\n",
		"monitor: handlers is well again\n",
		"order-back              REFUNDED        0.00        0.00\n",
	} {
		_, after, found := strings.Cut(rest, line)
		if !found {
			t.Errorf("the year lacks, in its place, the line\n%s", line)
			continue
		}
		rest = after
	}
	if t.Failed() {
		t.Log(out.String())
	}
	for _, c := range []struct{ reason, sql, says string }{
		{"a payment that is lost", `delete from ledger where charge = (select min(charge) from ledger)`, "should be"},
		{"one that is booked twice", `insert into ledger select charge, 'again', amount from ledger where fact = 'received' limit 1`, "should be"},
		{"an order that is open", `update orders set paid_at = null where id = 'order-2'`, "order-2 is open, should be paid"},
		{"a refunded one that is sent", `update orders set refunded_at = null where id = 'order-back'`, "order-back is paid, should be refunded"},
		{"an event that is not done", `insert into idem_events (event, type, key, state) values ('asaas//e', 'PAYMENT_RECEIVED', 'p', 'parked');
			insert into idem_payloads (event, source, received_at, body) values ('asaas//e', 'asaas', now(), '')`, "1 events are not done"},
	} {
		tx, err := y.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), c.sql); err != nil {
			t.Fatal(err)
		}
		y.books = tx
		if err := y.check(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: check says %v, want %q", c.reason, err, c.says)
		}
		if err := tx.Rollback(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}
