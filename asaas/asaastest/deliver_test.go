package asaastest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

func TestDeliveriesLookLikeAsaass(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, receive func(http.Handler) asaastest.Webhook) {
		s, fake := newShop(http.StatusOK), newFake(t)
		fake.AddWebhook(receive(s))
		body := asaastest.Event("PAYMENT_RECEIVED")
		fake.Emit(body)
		fake.Settle()
		got := s.requests()[0]
		if got.method != http.MethodPost || got.path != "/webhooks/asaas" || string(got.body) != string(body) {
			t.Errorf("it is a %s of %s: %s", got.method, got.path, got.body)
		}
		if err := asaas.Verify(got.header, got.body, token); err != nil {
			t.Error(err)
		}
		for name, want := range map[string]string{
			"Asaas-Access-Token": token,
			"Content-Type":       "application/json",
			"Accept":             "application/json",
			"User-Agent":         "Asaas_Hmlg/3.0",
			"Accept-Encoding":    "gzip",
		} {
			if diff := cmp.Diff([]string{want}, got.header[name]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

func TestHandlerIsCalledFromAnAddressOfAsaass(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusOK), newFake(t)
	fake.AddWebhook(asaastest.Webhook{Handler: s})
	fake.Emit(paid("evt_1"))
	fake.Settle()
	if got := s.requests()[0].remote; got != "52.67.12.206:40000" {
		t.Errorf("from %s", got)
	}
}

func TestOldWebhooksSendFormsWithoutAToken(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusOK), newFake(t)
	fake.AddWebhook(asaastest.Webhook{Handler: s, Token: token, APIVersion: 2})
	body := paid("evt_1")
	fake.Emit(body)
	fake.Settle()
	got := s.requests()[0]
	form, err := url.ParseQuery(string(got.body))
	if err != nil || form.Get("data") != string(body) {
		t.Errorf("the body is %s, %v", got.body, err)
	}
	if got.header.Get("Content-Type") != "application/x-www-form-urlencoded; charset=UTF-8" || got.header.Values(asaas.TokenHeader) != nil {
		t.Errorf("the header is %v", got.header)
	}
	if err := asaas.Verify(got.header, got.body, token); err == nil || !strings.Contains(err.Error(), "apiVersion 3") {
		t.Errorf("Verify says %v", err)
	}
}

func TestWebhookWithoutTokenSendsNone(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusOK), newFake(t)
	fake.AddWebhook(asaastest.Webhook{Handler: s})
	fake.Emit(paid("evt_1"))
	fake.Settle()
	if got, ok := s.requests()[0].header[asaas.TokenHeader]; ok {
		t.Errorf("it sends %q", got)
	}
}

func TestOnlyExactly200IsSuccessUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why          string
		status       int
		strict, lazy bool
	}{
		{"what Asaas asks for", 200, true, true},
		{"created", 201, false, true},
		{"accepted", 202, false, true},
		{"no content", 204, false, true},
		{"a redirect", 308, false, false},
		{"a refusal", 401, false, false},
		{"a failure", 503, false, false},
	} {
		for _, accept2xx := range []bool{false, true} {
			s, fake := newShop(test.status), newFake(t)
			fake.Accept2xx = accept2xx
			webhook := fake.AddWebhook(asaastest.Webhook{Handler: s})
			fake.Emit(paid("evt_1"))
			fake.Settle()
			want := accept2xx && test.lazy || test.strict
			if got := fake.Webhook(webhook).Pending == 0; got != want {
				t.Errorf("%s, %d, with Accept2xx %t: success is %t", test.why, test.status, accept2xx, got)
			}
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, receive func(http.Handler) asaastest.Webhook) {
		for _, status := range []int{301, 302, 303, 307, 308} {
			s, fake := newShop(status), newFake(t)
			fake.AddWebhook(receive(s))
			fake.Emit(paid("evt_1"))
			fake.Settle()
			failed := of(fake, asaastest.Failed)
			if len(s.requests()) != 1 || len(failed) != 1 || failed[0].Status != status || failed[0].Answer != "said the shop" {
				t.Errorf("%d: %d requests, %v", status, len(s.requests()), failed)
			}
		}
	})
}

func TestReceiverThatIsTooSlowFails(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, receive func(http.Handler) asaastest.Webhook) {
		fake := newFake(t)
		fake.Timeout = time.Millisecond
		fake.AddWebhook(receive(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done() // Asaas hangs up
		})))
		fake.Emit(paid("evt_1"))
		fake.Settle()
		failed := of(fake, asaastest.Failed)
		if len(failed) != 1 || failed[0].Status != 0 || failed[0].Error != "no answer within 1ms" {
			t.Errorf("it happened:\n%s", lines(fake.Timeline()))
		}
	})
}

func TestReceiverThatIsNotThereFails(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	fake := newFake(t)
	fake.AddWebhook(asaastest.Webhook{URL: server.URL})
	fake.AddWebhook(asaastest.Webhook{URL: "http://a b/"})
	fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })})
	fake.Emit(paid("evt_1"))
	fake.Settle()
	failed := of(fake, asaastest.Failed)
	if len(failed) != 3 {
		t.Fatalf("it happened:\n%s", lines(fake.Timeline()))
	}
	for i, says := range []string{"connection refused", "invalid character", "EOF"} {
		if failed[i].Status != 0 || !strings.Contains(failed[i].Error, says) {
			t.Errorf("it fails with %q, want %q", failed[i].Error, says)
		}
	}
}

func TestAnswersAreReadWithinALimit(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 1<<20))
	})})
	fake.Emit(paid("evt_1"))
	fake.Settle()
	if delivered := of(fake, asaastest.Delivered); len(delivered) != 1 || len(delivered[0].Answer) != 4<<10 {
		t.Errorf("it happened:\n%s", lines(fake.Timeline()))
	}
}
