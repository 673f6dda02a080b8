package main

import (
	"testing"

	"github.com/paghooks/paghooks/asaas"
)

func TestEachEventHasAnIDAChargeAndAnAmount(t *testing.T) {
	t.Parallel()
	e := newEvents("0a1b2c3d")
	ids := make(map[string]bool)
	for _, n := range []int64{0, 1, 2, charges - 1, charges, 12*charges + 34, 1e12} {
		event, err := asaas.Parse(e.body(n))
		if err != nil {
			t.Fatal(err)
		}
		p := event.(*asaas.PaymentEvent)
		if amount := p.Payment.Value.Cents(); amount != cents(n) {
			t.Errorf("event %d is of %d cents, want %d", n, amount, cents(n))
		}
		if p.Payment.ID != e.charge(n) {
			t.Errorf("event %d is about %s, want %s", n, p.Payment.ID, e.charge(n))
		}
		ids[p.ID] = true
	}
	if len(ids) != 7 {
		t.Errorf("7 events have %d ids", len(ids))
	}
	if e.charge(5) != e.charge(5+charges) || e.charge(5) == e.charge(6) {
		t.Error("the events are not about the charges in turn")
	}
}

func TestAmountsArePositiveAndDiffer(t *testing.T) {
	t.Parallel()
	seen := make(map[int64]int)
	for n := range int64(charges) {
		amount := cents(n)
		if amount < 1 || amount > 1e8 {
			t.Fatalf("event %d is of %d cents", n, amount)
		}
		seen[amount]++
	}
	if len(seen) < charges-10 {
		t.Errorf("%d events are of %d amounts", charges, len(seen))
	}
}
