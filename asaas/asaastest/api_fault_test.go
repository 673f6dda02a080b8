package asaastest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/asaas/asaastest"
)

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
		{"too many", asaastest.APITooMany, 429, `{"errors":[{"code":"too_many_requests"`, true, false},
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

func TestAPIMayBeSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := asaastest.New()
		defer fake.Close()
		fake.InjectAPI(asaastest.APIDelay(time.Minute), asaastest.APIDelay(time.Hour))
		began := time.Now()
		create(t, fake)
		if got := time.Since(began); got != time.Minute {
			t.Errorf("answered after %s", got)
		}
		client := &http.Client{Transport: fake.Transport(), Timeout: time.Minute}
		answer, err := client.Do(newRequest(t, fake, http.MethodPost, "/v3/webhooks", newWebhook))
		if err == nil {
			answer.Body.Close()
			t.Error("a client that gave up is answered")
		}
		if _, list := call(t, fake, http.MethodGet, "/v3/webhooks", ""); list["totalCount"] != 1.0 {
			t.Errorf("%v webhooks are there", list["totalCount"])
		}
	})
}
