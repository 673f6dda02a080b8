package zeltapay_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/zeltapay"
)

// seen is what the accessors say of one event.
type seen struct {
	LinkID, TransactionID, Currency, Method, Name, Email, OrderID string

	Amount    zeltapay.Cents
	HasAmount bool
	PaidAt    zeltapay.Time
	IsTest    bool
}

func see(e *zeltapay.PaymentEvent) seen {
	s := seen{
		LinkID: e.LinkID(), TransactionID: e.TransactionID(), Currency: e.Currency(), Method: e.PaymentMethod(),
		Name: e.CustomerName(), Email: e.CustomerEmail(), PaidAt: e.PaidAt(), IsTest: e.IsTest(),
	}
	s.Amount, s.HasAmount = e.Amount()
	s.OrderID, _ = e.LinkMetadata().String("orderId")
	return s
}

func TestAccessorsReadBothLayouts(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]seen{
		"payment_success_flat_1.0.0.json": {
			LinkID: "pl_aa11bb22cc33dd44", TransactionID: "nmi_778899", Currency: "USD", Method: "credit_card",
			Name: "Ana Quintero", Email: "ana@example.com", OrderID: "A-1001",
			Amount: 12550, HasAmount: true, PaidAt: "2025-03-04T15:06:05.120Z",
		},
		"payment_success_flat_1.1.0.json": {
			LinkID: "pl_1122334455667788", TransactionID: "yap_445566", Currency: "USD", Method: "yappy", Name: "Luis Batista",
			Amount: 100, HasAmount: true, PaidAt: "2026-02-03T04:05:05.000Z", IsTest: true,
		},
		"payment_success_nested.json": {
			LinkID: "pl_99aabbccddeeff00", TransactionID: "txn_31415926", Method: "card", Email: "eva@example.com", OrderID: "A-1002",
			Amount: 2500, HasAmount: true, PaidAt: "2026-02-03T12:30:45.000Z",
		},
		"payment_success_nested_null_email.json": {
			LinkID: "pl_99aabbccddeeff01", TransactionID: "txn_31415927", Method: "yappy",
			Amount: 0, HasAmount: true, PaidAt: "2026-02-03T12:31:00-05:00",
		},
	} {
		got := see(parsed(t, read(t, "testdata/"+file)).(*zeltapay.PaymentEvent))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestAccessorsOfAnEmptyEventSayNothing(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(seen{}, see(new(zeltapay.PaymentEvent))); diff != "" {
		t.Error(diff)
	}
}
