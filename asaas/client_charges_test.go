package asaas_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/value"
)

func TestChargesAreMadeAndFoundByExactlyThis(t *testing.T) {
	t.Parallel()
	const charge = `{"id":"pay_1","status":"PENDING","value":100}`
	client := clientOf(t,
		exchange{method: "POST", uri: "/v3/payments", status: 200, answer: charge, body: `{"customer":"cus_1","billingType":"PIX","value":100.10,` +
			`"dueDate":"2026-12-01","externalReference":"order-7","split":[{"walletId":"w","percentualValue":15.00}]}`},
		exchange{method: "GET", uri: "/v3/payments?externalReference=order-7%26a&limit=100&offset=0", status: 200, answer: `{"data":[` + charge + `]}`},
	)
	p, err := client.CreatePayment(t.Context(), asaas.PaymentCreate{
		Customer: "cus_1", BillingType: asaas.BillingTypePix, Value: value.Of(asaas.Cents(10010)), DueDate: "2026-12-01",
		ExternalReference: value.Of("order-7"),
		Split:             value.Of([]asaas.SplitCreate{{WalletID: "w", PercentualValue: value.Of(value.PercentOf(asaas.Cents(1500)))}}),
	})
	if err != nil || p.ID != "pay_1" {
		t.Errorf("%v, %v", p, err)
	}
	found, err := client.Payments(t.Context(), asaas.PaymentFilter{ExternalReference: "order-7&a"}, 0)
	if err != nil || len(found.Data.Or(nil)) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}

// A charge is asked for once, and the error says whether it may have been made.
func TestAChargeIsNeverAskedForTwiceByItself(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason  string
		answer  http.HandlerFunc
		outcome asaas.CallOutcome
		want    string
	}{
		{"a server in trouble", answer(502, ""), asaas.CallUnknown, "look for its externalReference before you make it again"},
		{"a connection that is reset", reset, asaas.CallUnknown, "look for its externalReference before you make it again"},
		{"half of the answer", answer(200, `{"id":"pay_`), asaas.CallUnknown, "look for its externalReference"},
		{"another object", answer(200, `{"object":"customer"}`), asaas.CallUnknown, "look for its externalReference"},
		{"too many requests", answer(429, ""), asaas.CallNotDelivered, "try it again later"},
		{"a mistake", answer(400, refusal("invalid_customer", "a")), asaas.CallRejected, "correct what it names"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			calls := 0
			client := clientWith(t, func(w http.ResponseWriter, r *http.Request) { calls++; tt.answer(w, r) })
			_, err := client.CreatePayment(t.Context(), asaas.PaymentCreate{})
			e, ok := errors.AsType[*asaas.APIError](err)
			if !ok || e.Outcome != tt.outcome || !strings.Contains(err.Error(), tt.want) || calls != 1 {
				t.Errorf("%d calls, %v; want %s and %q", calls, err, tt.outcome, tt.want)
			}
		})
	}
}

func keysOf(keys ...string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i, key := range keys {
			if !yield(fmt.Sprintf("shop-%d", i+1), key) {
				return
			}
		}
	}
}

func TestABrokenKeyDoesNotEndTheListOfAccounts(t *testing.T) {
	t.Parallel()
	const secret = "aact_prod_without_its_dollar"
	var got []string
	for account, client := range asaas.Clients(asaas.Production, keysOf(apiKey, secret, "", apiKey)) {
		client.Transport = asaastest.New().Transport() // a sandbox, which refuses these keys
		_, err := client.AccountStatus(t.Context())
		e, ok := errors.AsType[*asaas.APIError](err)
		if !ok || strings.Contains(err.Error(), secret) {
			t.Fatalf("%s: %v", account, err)
		}
		got = append(got, fmt.Sprint(account, " ", e.Outcome))
		if account == "shop-2" && !strings.Contains(err.Error(), `AccountStatus: nothing was sent: the account "shop-2": asaas: the API key does not start with`) {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"shop-1 rejected", "shop-2 not delivered", "shop-3 not delivered", "shop-4 rejected"}, got); diff != "" {
		t.Error(diff)
	}
	for range asaas.Clients(asaas.Production, keysOf(apiKey, secret)) {
		break // a list may be left
	}
}

func TestACustomerThatIsPrintedOrLoggedShowsNoPerson(t *testing.T) {
	t.Parallel()
	client := clientOf(t, exchange{
		method: "GET", uri: "/v3/customers/cus_1", status: 200,
		answer: `{"id":"cus_1","name":"Ana Souza","cpfCnpj":"11144477735","email":"ana@example.com"}`,
	})
	c, err := client.Customer(t.Context(), "cus_1")
	if err != nil || c.CpfCnpj.Or("") != "11144477735" {
		t.Fatal(c, err)
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("a customer", "c", c)
	}
	for _, said := range []string{log.String(), fmt.Sprintf("%v %+v %#v %s", c, c, *c, c)} {
		if !strings.Contains(said, "cus_1") || strings.Contains(said, "Souza") || strings.Contains(said, "11144477735") || strings.Contains(said, "ana@") {
			t.Errorf("it shows %s", said)
		}
	}
}
