package asaastest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/value"
)

const subAccount = `{"name":"Vendedora","email":"vendedora@example.com","cpfCnpj":"66625514000140","mobilePhone":"11 988451155",
	"incomeValue":5000,"address":"Av. Rolf Wiest","addressNumber":"277","province":"Bom Retiro","postalCode":"89223005"}`

func newPayment(reference string) asaas.PaymentCreate {
	return asaas.PaymentCreate{
		Customer: "cus_000005219613", BillingType: asaas.BillingTypePix, Value: value.Of(asaas.Cents(10000)),
		DueDate: "2026-08-20", ExternalReference: value.Of(reference),
	}
}

// idsOf returns the ids of an account's charges.
func idsOf(t testing.TB, client *asaas.Client, f asaas.PaymentFilter) []string {
	t.Helper()
	page, err := client.Payments(t.Context(), f, 0)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, p := range page.Data.Or(nil) {
		ids = append(ids, p.ID)
	}
	return ids
}

func TestASubAccountHasItsOwnKeyWebhooksChargesAndLimit(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	fake.Limit = asaastest.RateLimit{Requests: 5, Window: time.Hour}
	status, made := call(t, fake, http.MethodPost, "/v3/accounts", subAccount)
	key, _ := made["apiKey"].(string)
	if status != http.StatusOK || key == "" || made["walletId"] == "" {
		t.Fatalf("%d: %v", status, made)
	}
	if _, list := call(t, fake, http.MethodGet, "/v3/accounts", ""); list["totalCount"] != 1.0 || list["data"].([]any)[0].(map[string]any)["apiKey"] != nil {
		t.Errorf("the list shows %v", list)
	}
	seller := fake.ClientOf(key)
	w, err := seller.CreateWebhook(t.Context(), asaas.WebhookCreate{
		Name: "Vendedora", URL: "https://shop.example/seller", Email: "ops@shop.example", Events: []asaas.EventType{asaas.EventPaymentCreated, asaas.EventPaymentReceived},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fake.Client().Webhook(t.Context(), w.ID); err == nil {
		t.Error("the key of the platform shows the webhook of its sub-account")
	}
	p, err := seller.CreatePayment(t.Context(), newPayment("order-1"))
	if err != nil {
		t.Fatal(err)
	}
	fake.Emit(fake.Charge(p.ID).Received())
	if got := fake.Webhook(w.ID); got.Pending != 2 || got.Account != made["id"] {
		t.Errorf("%d events wait in the webhook of account %q, want 2 of %v", got.Pending, got.Account, made["id"])
	}
	if ids := idsOf(t, seller, asaas.PaymentFilter{}); !cmp.Equal(ids, []string{p.ID}) {
		t.Errorf("the seller's charges are %v", ids)
	}
	if ids := idsOf(t, fake.Client(), asaas.PaymentFilter{}); len(ids) != 0 {
		t.Errorf("the platform's charges are %v", ids)
	}
	if s, err := seller.AccountStatus(t.Context()); err != nil || s.ID != made["id"] {
		t.Errorf("%v, %v", s, err)
	}
	_, err = seller.AccountStatus(t.Context()) // the sixth call
	if e, ok := errors.AsType[*asaas.APIError](err); err != nil && (!ok || e.Status != http.StatusTooManyRequests) {
		t.Error(err)
	}
	if _, err := fake.Client().AccountStatus(t.Context()); err != nil {
		t.Errorf("the seller's calls count for the platform: %v", err)
	}
}

func TestAChargeIsMadeEachTimeAndFoundByItsReference(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	id := fake.AddWebhook(asaastest.Webhook{URL: "http://receiver.example"})
	client := fake.Client()
	for _, reference := range []string{"order-1", "order-1", "order-2"} {
		if _, err := client.CreatePayment(t.Context(), newPayment(reference)); err != nil {
			t.Fatal(err)
		}
	}
	if ids := idsOf(t, client, asaas.PaymentFilter{ExternalReference: "order-1"}); len(ids) != 2 || ids[0] == ids[1] {
		t.Errorf("order-1 has the charges %v, want two", ids)
	}
	if pending := fake.Webhook(id).Pending; pending != 3 {
		t.Errorf("%d events wait, want a PAYMENT_CREATED for each", pending)
	}
	found := idsOf(t, client, asaas.PaymentFilter{ExternalReference: "order-2"})
	fake.Emit(fake.Charge(found[0]).Deleted())
	if ids := idsOf(t, client, asaas.PaymentFilter{ExternalReference: "order-2"}); len(ids) != 0 {
		t.Errorf("a removed charge is listed: %v", ids)
	}
}

func TestAChargeThatMayNotBeIsRefused(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	seller := fake.AddAccount("seller")
	for _, tt := range []struct {
		code   string
		change func(*asaas.PaymentCreate)
	}{
		{"invalid_customer", func(p *asaas.PaymentCreate) { p.Customer = "" }},
		{"invalid_billingType", func(p *asaas.PaymentCreate) { p.BillingType = "CHEQUE" }},
		{"invalid_value", func(p *asaas.PaymentCreate) { p.Value = value.Optional[asaas.Money]{} }},
		{"invalid_dueDate", func(p *asaas.PaymentCreate) { p.DueDate = "2026-08-07" }},
		{"invalid_split", func(p *asaas.PaymentCreate) { // its own wallet
			p.Split = value.Of([]asaas.SplitCreate{{WalletID: fake.WalletID, FixedValue: value.Of(asaas.Cents(100))}})
		}},
		{"invalid_split", func(p *asaas.PaymentCreate) { // more than is left after the fee
			p.Split = value.Of([]asaas.SplitCreate{{WalletID: seller.WalletID, FixedValue: value.Of(asaas.Cents(10000))}})
		}},
	} {
		wanted := newPayment("order-1")
		tt.change(&wanted)
		_, err := fake.Client().CreatePayment(t.Context(), wanted)
		if e, ok := errors.AsType[*asaas.APIError](err); !ok || e.Outcome != asaas.CallRejected || e.Errors[0].Code != tt.code {
			t.Errorf("want %s: %v", tt.code, err)
		}
	}
	if ids := idsOf(t, fake.Client(), asaas.PaymentFilter{}); len(ids) != 0 {
		t.Errorf("the charges %v were made", ids)
	}
}

func TestASplitIsSettledBlockedAndCancelled(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	seller := fake.AddAccount("seller")
	wanted := newPayment("order-1")
	wanted.Split = value.Of([]asaas.SplitCreate{{WalletID: seller.WalletID, PercentualValue: value.Of(value.PercentOf(asaas.Cents(9000)))}})
	p, err := fake.Client().CreatePayment(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	charge := fake.Charge(p.ID)
	split := charge.Payment.Split.Or(nil)[0].ID.Or("")
	charge.Received()
	var got []string
	for _, body := range [][]byte{charge.SplitBlocked(), charge.SplitDone(split), charge.SplitCancelled(split, asaas.SplitCancellationReasonPaymentSplitValidationFailed)} {
		e, err := asaas.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		event := e.(*asaas.PaymentEvent)
		s := event.Payment.AllSplits()[0]
		got = append(got, fmt.Sprint(event.Event, " ", event.SplitID() == split, " ", s.Status, " ", s.TotalValue))
	}
	want := []string{
		"PAYMENT_SPLIT_DIVERGENCE_BLOCK false BLOCKED_BY_VALUE_DIVERGENCE 88.21",
		"PAYMENT_SPLIT_DONE true DONE 88.21",
		"PAYMENT_SPLIT_CANCELLED true CANCELLED 88.21",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A platform and its seller: the seller's charge has a part for the platform.
func ExampleFake_AddAccount() {
	fake := asaastest.New()
	defer fake.Close()
	seller := fake.AddAccount("Vendedora")
	fake.AddWebhook(asaastest.Webhook{Account: seller.ID, Token: "the seller's token", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("delivered with", r.Header.Get(asaas.TokenHeader))
	})})
	p, err := fake.ClientOf(seller.APIKey).CreatePayment(context.Background(), asaas.PaymentCreate{
		Customer: "cus_000005219613", BillingType: asaas.BillingTypePix, Value: value.Of(asaas.Cents(10000)), DueDate: "2026-08-20",
		ExternalReference: value.Of("order-1"),
		Split:             value.Of([]asaas.SplitCreate{{WalletID: fake.WalletID, FixedValue: value.Of(asaas.Cents(1500))}}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fake.Emit(fake.Charge(p.ID).Received())
	fake.Settle()
	// Output:
	// delivered with the seller's token
	// delivered with the seller's token
}
