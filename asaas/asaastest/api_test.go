package asaastest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas/asaastest"
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
	fake.RemoveBackoffLimit = asaastest.RateLimit{Requests: 1, Window: time.Minute}
	id := fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusOK)})
	path := "/v3/webhooks/" + id + "/removeBackoff"
	for _, want := range []int{http.StatusNoContent, http.StatusTooManyRequests} {
		if status, _ := call(t, fake, http.MethodPost, path, "{}"); status != want {
			t.Errorf("answered %d, want %d", status, want)
		}
	}
	if status, _ := call(t, fake, http.MethodGet, "/v3/webhooks", ""); status != http.StatusOK {
		t.Errorf("another call is answered %d", status)
	}
}
