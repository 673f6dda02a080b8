package asaastest_test

import (
	"net/http"
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
		w := receive(s)
		fake.AddWebhook(w)
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
		if w.Handler != nil && got.remote != "52.67.12.206:40000" {
			t.Errorf("a Handler is called from %s", got.remote)
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

func TestOnlyExactly200IsSuccess(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 202, 204, 308, 401, 503} {
		s, fake := newShop(status), newFake(t)
		webhook := fake.AddWebhook(asaastest.Webhook{Handler: s})
		fake.Emit(paid("evt_1"))
		fake.Settle()
		if got := fake.Webhook(webhook).Pending == 0; got != (status == http.StatusOK) {
			t.Errorf("%d: success is %t", status, got)
		}
	}
}

// faultyRun delivers two events to a shop, the first attempt with a fault, and
// moves on by a minute.
func faultyRun(t *testing.T, receive func(http.Handler) asaastest.Webhook, fault asaastest.Fault) (*shop, []asaastest.Entry) {
	s, fake := newShop(http.StatusOK), newFake(t)
	fake.AddWebhook(receive(s))
	fake.Inject(fault)
	fake.Emit(paid("evt_1"), paid("evt_2"))
	fake.Advance(time.Minute)
	return s, of(fake, asaastest.Delivered, asaastest.Failed, asaastest.Copied)
}

func TestFaultsGoAsTheySay(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, receive func(http.Handler) asaastest.Webhook) {
		for _, test := range []struct {
			why      string
			fault    asaastest.Fault
			received []string // nil where a body has no id
			timeline []string // without the event's type
		}{
			{"nothing is wrong", 0, []string{"evt_1", "evt_2"}, []string{
				"23:45:13 delivered evt_1, attempt 1: 200",
				"23:45:13 delivered evt_2, attempt 1: 200",
			}},
			{"a second copy after the first", asaastest.Duplicate, []string{"evt_1", "evt_1", "evt_2"}, []string{
				"23:45:13 delivered evt_1, attempt 1: 200",
				"23:45:13 copied evt_1, attempt 1: 200",
				"23:45:13 delivered evt_2, attempt 1: 200",
			}},
			{"two copies at once", asaastest.Concurrent, []string{"evt_1", "evt_1", "evt_2"}, []string{
				"23:45:13 delivered evt_1, attempt 1: 200",
				"23:45:13 copied evt_1, attempt 1: 200",
				"23:45:13 delivered evt_2, attempt 1: 200",
			}},
			{"the second event comes first", asaastest.Swap, []string{"evt_2", "evt_1"}, []string{
				"23:45:13 delivered evt_2, attempt 1: 200",
				"23:45:13 delivered evt_1, attempt 1: 200",
			}},
			{"Asaas does not hear of the success", asaastest.LostAnswer, []string{"evt_1", "evt_1", "evt_2"}, []string{
				"23:45:13 failed evt_1, attempt 1: 200, the answer was lost, next in 30s",
				"23:45:43 delivered evt_1, attempt 2: 200",
				"23:45:43 delivered evt_2, attempt 1: 200",
			}},
			{"slow is not wrong", asaastest.SlowBody, []string{"evt_1", "evt_2"}, []string{
				"23:45:13 delivered evt_1, attempt 1: 200",
				"23:45:13 delivered evt_2, attempt 1: 200",
			}},
			{"two copies, both answers lost", asaastest.Concurrent | asaastest.LostAnswer, []string{"evt_1", "evt_1", "evt_1", "evt_2"}, []string{
				"23:45:13 failed evt_1, attempt 1: 200, the answer was lost, next in 30s",
				"23:45:13 copied evt_1, attempt 1: 200, the answer was lost",
				"23:45:43 delivered evt_1, attempt 2: 200",
				"23:45:43 delivered evt_2, attempt 1: 200",
			}},
			{"no answer to half of a body gets back", asaastest.CutBody, nil, []string{
				"23:45:13 failed evt_1, attempt 1: the connection broke in the body, next in 30s",
				"23:45:43 delivered evt_1, attempt 2: 200",
				"23:45:43 delivered evt_2, attempt 1: 200",
			}},
		} {
			s, entries := faultyRun(t, receive, test.fault)
			if diff := cmp.Diff(test.received, s.ids()); diff != "" && test.received != nil {
				t.Errorf("%s: received (-want +got):\n%s", test.why, diff)
			}
			said := strings.NewReplacer("2026-08-08 ", "", "PAYMENT_RECEIVED ", "").Replace(lines(entries))
			if diff := cmp.Diff(test.timeline, strings.Split(strings.TrimSpace(said), "\n")); diff != "" {
				t.Errorf("%s: timeline (-want +got):\n%s", test.why, diff)
			}
			if entries[0].Fault != test.fault {
				t.Errorf("%s: the fault on the timeline is %d", test.why, entries[0].Fault)
			}
		}
	})
}

func TestWrongTokenIsAnotherOne(t *testing.T) {
	t.Parallel()
	s, _ := faultyRun(t, func(h http.Handler) asaastest.Webhook { return asaastest.Webhook{Handler: h, Token: token} }, asaastest.WrongToken)
	for i, want := range []bool{false, true} {
		got := s.requests()[i]
		if err := asaas.Verify(got.header, got.body, token); (err == nil) != want {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

func TestEventThatWasOvertakenGoesBackToItsPlaceOnResume(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusInternalServerError), newFake(t)
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: s})
	fake.Inject(asaastest.Swap)
	fake.Emit(paid("evt_1"), paid("evt_2"))
	fake.Advance(day)
	s.answers(http.StatusOK)
	fake.Resume(webhook)
	fake.Settle()
	if diff := cmp.Diff([]string{"evt_1", "evt_2"}, eventIDs(of(fake, asaastest.Delivered))); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}
