package asaastest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/value"
)

const newWebhook = `{"name":"orders","url":"https://shop.example/webhooks/asaas","email":"ops@example.com","sendType":"SEQUENTIALLY","events":["PAYMENT_RECEIVED"]}`

func newRequest(t testing.TB, fake *asaastest.Fake, method, path, body string) *http.Request {
	t.Helper()
	base := fake.URL
	if base == "" {
		base = "https://api-sandbox.asaas.com"
	}
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("access_token", fake.APIKey)
	return r
}

// call asks the API, and returns the answer as JSON.
func call(t testing.TB, fake *asaastest.Fake, method, path, body string) (status int, said map[string]any) {
	t.Helper()
	answer := ask(t, fake, newRequest(t, fake, method, path, body))
	if answer.Body.Len() > 0 {
		if err := json.Unmarshal(answer.Body.Bytes(), &said); err != nil {
			t.Fatalf("%s %s is answered %s: %v", method, path, answer.Body, err)
		}
	}
	return answer.Code, said
}

func ask(t testing.TB, fake *asaastest.Fake, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	answer, err := clientOf(fake).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	w := httptest.NewRecorder()
	w.Code = answer.StatusCode
	for name := range answer.Header {
		w.Header().Set(name, answer.Header.Get(name))
	}
	if _, err := io.Copy(w.Body, answer.Body); err != nil {
		t.Fatal(err)
	}
	return w
}

// codes are the codes of an error answer.
func codes(t testing.TB, said map[string]any) (out []string) {
	t.Helper()
	list, _ := said["errors"].([]any)
	for _, e := range list {
		problem := e.(map[string]any)
		if problem["description"] == "" {
			t.Errorf("%s has no description", problem["code"])
		}
		out = append(out, problem["code"].(string))
	}
	return out
}

func create(t testing.TB, fake *asaastest.Fake) (id string, created map[string]any) {
	t.Helper()
	status, created := call(t, fake, http.MethodPost, "/v3/webhooks", newWebhook)
	if status != http.StatusOK {
		t.Fatalf("answered %d: %v", status, created)
	}
	return created["id"].(string), created
}

func TestRequestsThatMayNotBeAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why, body, code string
		status          int
		change          func(http.Header)
	}{
		{"no key", "", "access_token_not_found", 401, func(h http.Header) { h.Del("access_token") }},
		{"not a key", "", "invalid_access_token_format", 401, func(h http.Header) { h.Set("access_token", "secret") }},
		{"another key", "", "invalid_access_token", 401, func(h http.Header) { h.Set("access_token", "$aact_hmlg_other") }},
		{"a key of production", "", "invalid_environment", 401, func(h http.Header) { h.Set("access_token", "$aact_prod_fake") }},
		{"no User-Agent", "", "user_agent_not_found", 400, func(h http.Header) { h.Set("User-Agent", "") }},
		{"a GET with a body", "{}", "forbidden", 403, func(http.Header) {}},
	} {
		fake := newFake(t)
		r := newRequest(t, fake, http.MethodGet, "/v3/webhooks", test.body)
		test.change(r.Header)
		answer := ask(t, fake, r)
		var said map[string]any
		if err := json.Unmarshal(answer.Body.Bytes(), &said); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{test.code}, codes(t, said)); answer.Code != test.status || diff != "" {
			t.Errorf("%s: %d, codes (-want +got):\n%s", test.why, answer.Code, diff)
		}
	}
}

func TestProductionRefusesKeysOfTheSandbox(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	fake.APIKey = "$aact_prod_fake"
	if status, _ := call(t, fake, http.MethodGet, "/v3/webhooks", ""); status != http.StatusOK {
		t.Errorf("its own key is answered %d", status)
	}
	r := newRequest(t, fake, http.MethodGet, "/v3/webhooks", "")
	r.Header.Set("access_token", "$aact_hmlg_fake")
	if answer := ask(t, fake, r); !strings.Contains(answer.Body.String(), "invalid_environment") {
		t.Errorf("answered %s", answer.Body)
	}
}

func TestRequestsAreLimited(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	fake.Limit = asaastest.RateLimit{Requests: 3, Window: time.Hour}
	get := func() []string {
		a := ask(t, fake, newRequest(t, fake, http.MethodGet, "/v3/webhooks", ""))
		h := a.Header()
		return []string{fmt.Sprint(a.Code), h.Get("RateLimit-Limit"), h.Get("RateLimit-Remaining"), h.Get("RateLimit-Reset")}
	}
	for _, want := range [][]string{{"200", "3", "2", "3600"}, {"200", "3", "1", "3600"}, {"200", "3", "0", "3600"}, {"429", "3", "0", "3600"}} {
		if diff := cmp.Diff(want, get()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	fake.Advance(time.Hour - time.Millisecond)
	if diff := cmp.Diff([]string{"429", "3", "0", "1"}, get()); diff != "" {
		t.Errorf("before the end of the window (-want +got):\n%s", diff)
	}
	fake.Advance(time.Millisecond)
	if diff := cmp.Diff([]string{"200", "3", "2", "3600"}, get()); diff != "" {
		t.Errorf("in the next window (-want +got):\n%s", diff)
	}
}

func TestRemoveBackoffHasAStricterLimit(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	id := fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusOK)})
	path := "/v3/webhooks/" + id + "/removeBackoff"
	for _, want := range []int{204, 204, 204, 204, 204, 429} {
		if status, _ := call(t, fake, http.MethodPost, path, "{}"); status != want {
			t.Errorf("answered %d, want %d", status, want)
		}
	}
	if status, _ := call(t, fake, http.MethodGet, "/v3/webhooks", ""); status != http.StatusOK {
		t.Errorf("another call is answered %d", status)
	}
}

func TestAPIFaultsGoAsTheySay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why    string
		fault  asaastest.APIFault
		status int
		body   string // how it begins
		isJSON bool
		done   bool // reports whether the request was executed
	}{
		{"an error", asaastest.APIStatus(500), 500, `{"errors":[{"code":"unknown_error"`, true, false},
		{"a page", asaastest.APIPage(503), 503, "<html><head><title>503 Service Unavailable", false, false},
		{"half of the JSON", asaastest.APICutJSON, 200, `{"id":"00000000-`, false, true},
		{"a permission", asaastest.APIForbidden, 403, `{"errors":[{"code":"insufficient_permission"`, true, false},
		{"nothing", nil, 200, `{"id":`, true, true},
	} {
		fake := newFake(t)
		fake.InjectAPI(test.fault)
		answer := ask(t, fake, newRequest(t, fake, http.MethodPost, "/v3/webhooks", newWebhook))
		if answer.Code != test.status || !strings.HasPrefix(answer.Body.String(), test.body) || json.Valid(answer.Body.Bytes()) != test.isJSON {
			t.Errorf("%s: answered %d %s", test.why, answer.Code, answer.Body)
		}
		_, list := call(t, fake, http.MethodGet, "/v3/webhooks", "")
		if (list["totalCount"] == 1.0) != test.done {
			t.Errorf("%s: %v webhooks are there", test.why, list["totalCount"])
		}
	}
}

func TestAPIConnectionsAreReset(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why   string
		fault asaastest.APIFault
		done  bool
	}{
		{"before it did anything", asaastest.APIReset, false},
		{"when it was done", asaastest.APILostAnswer, true},
	} {
		fake := asaastest.NewServer()
		t.Cleanup(fake.Close)
		fake.InjectAPI(test.fault, test.fault)
		for _, client := range []*http.Client{http.DefaultClient, clientOf(fake)} {
			answer, err := client.Do(newRequest(t, fake, http.MethodPost, "/v3/webhooks", newWebhook))
			if err == nil {
				answer.Body.Close()
				t.Errorf("%s: it is answered %s", test.why, answer.Status)
			}
		}
		_, list := call(t, fake, http.MethodGet, "/v3/webhooks", "")
		if (list["totalCount"] == 2.0) != test.done {
			t.Errorf("%s: %v webhooks are there", test.why, list["totalCount"])
		}
	}
}

// net/http's client repeats a GET on a connection that was used before.
func TestAPIResetIsNotHiddenByTheHTTPClient(t *testing.T) {
	t.Parallel()
	fake := asaastest.NewServer()
	t.Cleanup(fake.Close)
	fake.InjectAPI(nil, asaastest.APIReset)
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	for _, want := range []bool{true, false} {
		answer, err := client.Do(newRequest(t, fake, http.MethodGet, "/v3/webhooks", ""))
		if err == nil {
			_, _ = io.Copy(io.Discard, answer.Body) // or the connection is not used again
			answer.Body.Close()
		}
		if (err == nil) != want {
			t.Errorf("answered with error %v, want an answer: %t", err, want)
		}
	}
}

func TestAPIMayBeSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := asaastest.New()
		defer fake.Close()
		fake.InjectAPI(asaastest.APISilence)
		client := &http.Client{Transport: fake.Transport(), Timeout: time.Hour}
		began := time.Now()
		answer, err := client.Do(newRequest(t, fake, http.MethodPost, "/v3/webhooks", newWebhook))
		if err == nil {
			answer.Body.Close()
		}
		if !os.IsTimeout(err) || time.Since(began) != time.Hour {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if _, list := call(t, fake, http.MethodGet, "/v3/webhooks", ""); list["totalCount"] != 0.0 {
			t.Errorf("%v webhooks are there", list["totalCount"])
		}
	})
}

func TestTheStatementHasWhatMovedMoney(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why  string
		life func(*asaastest.Charge) [][]byte // after it was made
		want []string
	}{
		{"a card, given back before its money came", func(c *asaastest.Charge) [][]byte { return [][]byte{c.Confirmed(), c.Refunded()} }, nil},
		{"cash is not at Asaas", func(c *asaastest.Charge) [][]byte { return [][]byte{c.ReceivedInCash()} }, nil},
		{"a part is given back", func(c *asaastest.Charge) [][]byte {
			return [][]byte{c.Received(), c.PartiallyRefunded(asaas.Cents(3000))}
		}, []string{"PAYMENT_REVERSAL -30 = 68.01", "PAYMENT_FEE -1.99 = 98.01", "PAYMENT_RECEIVED 100 = 100"}},
		{"a part is asked back", func(c *asaastest.Charge) [][]byte { return [][]byte{c.Received(), c.RefundAsked(asaas.Cents(3000))} }, []string{"PAYMENT_FEE -1.99 = 98.01", "PAYMENT_RECEIVED 100 = 100"}},
		{"a part is asked back and given back", func(c *asaastest.Charge) [][]byte {
			return [][]byte{c.Received(), c.RefundAsked(asaas.Cents(3000)), c.RefundDone()}
		}, []string{"PAYMENT_REVERSAL -30 = 68.01", "PAYMENT_FEE -1.99 = 98.01", "PAYMENT_RECEIVED 100 = 100"}},
		{"all is asked back and given back", func(c *asaastest.Charge) [][]byte {
			return [][]byte{c.Received(), c.RefundAsked(asaas.Cents(10000)), c.RefundDone()}
		}, []string{"PAYMENT_REVERSAL -100 = -1.99", "PAYMENT_FEE -1.99 = 98.01", "PAYMENT_RECEIVED 100 = 100"}},
		{"a refund is called off", func(c *asaastest.Charge) [][]byte {
			return [][]byte{c.Received(), c.RefundAsked(asaas.Cents(3000)), c.RefundCanceled()}
		}, []string{"PAYMENT_FEE -1.99 = 98.01", "PAYMENT_RECEIVED 100 = 100"}},
		{"a chargeback", func(c *asaastest.Charge) [][]byte { return [][]byte{c.Received(), c.ChargebackRequested()} }, []string{"CHARGEBACK -100 = -1.99", "PAYMENT_FEE -1.99 = 98.01", "PAYMENT_RECEIVED 100 = 100"}},
		{"a chargeback that is won", func(c *asaastest.Charge) [][]byte {
			return [][]byte{c.Received(), c.ChargebackRequested(), c.ChargebackDispute(), c.AwaitingChargebackReversal(), c.Received()}
		}, []string{"CHARGEBACK_REVERSAL 100 = 98.01", "CHARGEBACK -100 = -1.99", "PAYMENT_FEE -1.99 = 98.01", "PAYMENT_RECEIVED 100 = 100"}},
		{"a part is given back before its money came", func(c *asaastest.Charge) [][]byte {
			return [][]byte{c.Confirmed(), c.PartiallyRefunded(asaas.Cents(4000)), c.Received()}
		}, []string{"PAYMENT_FEE -1.99 = 58.01", "PAYMENT_RECEIVED 60 = 60"}},
		{"an anticipation and a split", func(c *asaastest.Charge) [][]byte {
			c.Payment.Split = value.Of([]asaas.Split{{ID: value.Of("split"), TotalValue: value.Of(asaas.Cents(1000))}})
			confirmed := c.Confirmed()
			c.Payment.Anticipated = true
			return [][]byte{confirmed, c.Received()}
		}, []string{
			"RECEIVABLE_ANTICIPATION_DEBIT -98.01 = 86.05", "INTERNAL_TRANSFER_DEBIT -10 = 184.06", "PAYMENT_FEE -1.99 = 194.06", "PAYMENT_RECEIVED 100 = 196.05",
			"RECEIVABLE_ANTICIPATION_FEE -1.96 = 96.05", "RECEIVABLE_ANTICIPATION_GROSS_CREDIT 98.01 = 98.01",
		}},
	} {
		fake := newFake(t)
		charge := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(10000))
		fake.Emit(charge.Created())
		fake.Emit(test.life(charge)...)
		_, said := call(t, fake, http.MethodGet, "/v3/financialTransactions", "")
		var got []string
		for _, movement := range said["data"].([]any) {
			m := movement.(map[string]any)
			got = append(got, fmt.Sprint(m["type"], " ", m["value"], " = ", m["balance"]))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

// Asaas lists the charges of one of 14 statuses. AUTHORIZED is none of them, and no list is one.
func TestChargesAreListedByOneStatus(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	for _, life := range asaastest.Lives("") {
		fake.Emit(life.Bodies...)
	}
	authorized := asaastest.Event("PAYMENT_AUTHORIZED", asaastest.Set("payment.id", "pay_1_a1B2c3D4e5F6g7"))
	fake.Emit(authorized)
	for status, want := range map[string]int{"REFUND_REQUESTED": 1, "AWAITING_CHARGEBACK_REVERSAL": 0, "PENDING": 1, "AUTHORIZED": -1, "PENDING,OVERDUE": -1, "PAID": -1} {
		code, said := call(t, fake, http.MethodGet, "/v3/payments?status="+status, "")
		if want < 0 {
			if code != http.StatusBadRequest || codes(t, said)[0] != "invalid_status" {
				t.Errorf("%s is answered %d: %v", status, code, said)
			}
			continue
		}
		if code != http.StatusOK || said["totalCount"] != float64(want) {
			t.Errorf("%s is answered %d: %v charges, want %d", status, code, said["totalCount"], want)
		}
	}
}
