package zeltapay_test

import (
	"testing"

	"github.com/paghooks/paghooks/idem/provider/providertest"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

func TestZeltaPayKeepsThePromisesOfProviders(t *testing.T) {
	t.Parallel()
	for _, layout := range []zeltapaytest.Layout{zeltapaytest.Flat, zeltapaytest.Nested} {
		p := providertest.Of(zeltapay.NewDispatcher, zeltapay.Verify, zeltapay.Identify, zeltapay.Parse,
			zeltapaytest.Types(), layout.Event, layout.Sparse, zeltapaytest.Request)
		p.Named = named
		p.Essential = map[string][]string{"payment.success": {"paymentLink", "paymentLink.amount"}, "webhook.ping": nil}
		p.Personal = map[string][]string{"payment.success": {"customer.email", "paymentLink.metadata.cpf"}}
		p.Free = []string{"paymentLink.metadata"}
		if layout == zeltapaytest.Flat {
			p.Essential["payment.success"] = []string{"transaction", "transaction.amount"}
			p.Personal["payment.success"] = []string{"customer.customerEmail", "customer.customerName", "metadata.cpf"}
			p.Free = []string{"metadata"}
			p.Original = read(t, "testdata/payment_success_flat_1.1.0.json")
			for _, c := range changes {
				p.Changes = append(p.Changes, providertest.Changed(c))
			}
		}
		t.Run(string(layout), func(t *testing.T) { providertest.Run(t, p) })
	}
}

// An event that is named by its link alone is nothing without it.
func TestAPaymentWithoutATransactionNeedsItsLink(t *testing.T) {
	t.Parallel()
	for layout, paths := range map[zeltapaytest.Layout][2]string{
		zeltapaytest.Flat: {"transaction.externalPaymentId", "paymentLinkId"}, zeltapaytest.Nested: {"transaction.id", "paymentLink.id"},
	} {
		for _, path := range paths {
			for _, both := range []bool{false, true} {
				changes := []zeltapaytest.Change{zeltapaytest.Delete(path)}
				if both {
					changes = []zeltapaytest.Change{zeltapaytest.Set(paths[0], nil), zeltapaytest.Delete(paths[1])}
				}
				d := zeltapay.NewDispatcher()
				handled(d)
				err := d.Dispatch(t.Context(), nil, zeltapay.Identify(layout.Event("payment.success", changes...)))
				if (err != nil) != both {
					t.Errorf("%s without %s, both: %t: %v", layout, path, both, err)
				}
			}
		}
	}
}

// named returns the ids of the event and of its link.
func named(body map[string]any) (id, key string) {
	id, _ = body["eventId"].(string)
	key, _ = body["paymentLinkId"].(string)
	if link, ok := body["paymentLink"].(map[string]any); ok {
		key, _ = link["id"].(string)
	}
	return id, key
}

// change is a [providertest.Changed].
type change struct{ Reason, Old, New, State, Error, Found string }

// changes are what Zelta Pay might do to its payments one day.
var changes = []change{
	{"nothing", "", "", "done", "", ""},
	{"an unknown event type", `"payment.success"`, `"payment.refunded"`, "unhandled", "", "unknown_event "},
	{"an unknown field", `"accountId"`, `"livemode":true,"accountId"`, "done", "", "unknown_field livemode"},
	{"an unknown field deep inside", `"isTest": true`, `"isTest":true,"fee":{"amount":1}`, "done", "", "unknown_field transaction.fee"},
	{"an unknown family key", `"transaction":`, `"charge":`, "parked", "transaction is missing", "unknown_field charge, missing_required transaction"},
	{"null for an amount", `"amount": 100`, `"amount":null`, "parked", "transaction.amount is null", "unexpected_null transaction.amount"},
	{"null, which may be anywhere", `"isTest": true`, `"isTest":null`, "done", "", ""},
	{"metadata of every kind", `"metadata": {}`, `"metadata":{"luis@example.com":1,"x":null,"y":[1]}`, "done", "", ""},
	{"an amount as a string", `"amount": 100`, `"amount":"100"`, "done", "", "changed_type transaction.amount"},
	{"an amount with cents of its own", `"amount": 100`, `"amount":1.5`, "parked", "transaction.amount", "changed_type transaction.amount"},
	{"an amount as an object", `"amount": 100`, `"amount":{"value":100}`, "parked", "transaction.amount", "changed_type transaction.amount"},
	{"an id as a number", `"pl_1122334455667788"`, `1122`, "parked", "paymentLinkId", "changed_type paymentLinkId"},
	{"a time as a number", `"paidAt": "2026-02-03T04:05:05.000Z"`, `"paidAt":1770091505`, "parked", "transaction.paidAt", "changed_type transaction.paidAt"},
	{"a bool as a string", `"isTest": true`, `"isTest":"yes"`, "parked", "transaction.isTest", "changed_type transaction.isTest"},
	{"an object as a list", `"metadata": {}`, `"x":1,"customer":[]`, "parked", "customer", "changed_type customer, unknown_field x"},
	{"metadata as a string", `"metadata": {}`, `"metadata":"x"`, "parked", "metadata", "changed_type metadata"},
	{"no JSON any more", `"eventId"`, `"eventId`, "unhandled", "", "unreadable "},
}
