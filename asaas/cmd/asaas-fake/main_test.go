package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
)

const token = "the token of the test"

// server is a user's server. It answers a dry run well.
type server struct {
	url    string
	status atomic.Int32

	mu     sync.Mutex
	bodies [][]byte
}

func newServer(t *testing.T, status int) *server {
	t.Helper()
	s := new(server)
	s.status.Store(int32(status))
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = asaas.Verify(r.Header, body, token)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if r.Header.Get(idem.DryRunHeader) != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"dry_run":"done"}`)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bodies = append(s.bodies, body)
		w.WriteHeader(int(s.status.Load()))
		_, _ = io.WriteString(w, `{"received":true}`)
	}))
	t.Cleanup(listening.Close)
	s.url = listening.URL + "/webhooks/asaas"
	return s
}

// fake runs the command with a token: deliver, unless another verb comes first.
func fake(args ...string) (status int, out, complaints string) {
	return fakeWith(token, args...)
}

func fakeWith(token string, args ...string) (status int, out, complaints string) {
	var o, c strings.Builder
	getenv := func(name string) string {
		if name != "ASAAS_WEBHOOK_TOKEN" {
			return ""
		}
		return token
	}
	if !slices.Contains([]string{"types", "serve", "help"}, args[0]) {
		args = append([]string{"deliver"}, args...)
	}
	status = run(context.Background(), args, getenv, &o, &c)
	return status, o.String(), c.String()
}

func payments(t *testing.T, s *server) (out []*asaas.PaymentEvent) {
	t.Helper()
	for _, body := range s.bodies {
		e, err := asaas.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.(*asaas.PaymentEvent))
	}
	return out
}

func TestEventIsDeliveredAsAsked(t *testing.T) {
	t.Parallel()
	s := newServer(t, http.StatusOK)
	status, out, complaints := fake("-to", s.url, "PAYMENT_RECEIVED", "-set", "payment.value=10.5", "-id", "evt_1", "-set", "payment.id=pay_1_a1B2c3D4e5F6g7",
		"-set", "payment.externalReference=1001", "-set", "payment.description=paid = done", "-set", "payment.subscription=null",
		"-set", `payment.split.0={"walletId":"a"}`, "-set", "payment.split.1.walletId=b")
	if status != 0 || out != "200 PAYMENT_RECEIVED evt_1: {\"received\":true}\n" || complaints != "" {
		t.Fatalf("exit status %d, prints %q, %q", status, out, complaints)
	}
	e := payments(t, s)[0]
	p := e.Payment
	got := []string{string(e.Envelope.ID), p.ID, p.Value.String(), p.ExternalReference.Or(""), p.Description.Or("")}
	if diff := cmp.Diff([]string{"evt_1", "pay_1_a1B2c3D4e5F6g7", "10.50", "1001", "paid = done"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !p.Subscription.IsNull() || !strings.Contains(string(s.bodies[0]), `"value":10.5,`) || !strings.Contains(string(s.bodies[0]), `"walletId":"b"`) {
		t.Errorf("the body is %s", s.bodies[0])
	}
}

func TestSeveralTypesAreDeliveredInTheirOrder(t *testing.T) {
	t.Parallel()
	s := newServer(t, http.StatusOK)
	status, out, _ := fake("PAYMENT_CREATED", "PAYMENT_RECEIVED", "PAYMENT_CREATED", "-sparse", "-to", s.url)
	if status != 0 || strings.Count(out, "\n") != 3 {
		t.Fatalf("exit status %d, prints %q", status, out)
	}
	ids := make(map[string]bool)
	var types []asaas.EventType
	for i, e := range payments(t, s) {
		ids[e.ID] = true
		types = append(types, e.Event)
		if len(s.bodies[i]) > 1500 {
			t.Errorf("it is not sparse: %s", s.bodies[i])
		}
	}
	if diff := cmp.Diff([]asaas.EventType{"PAYMENT_CREATED", "PAYMENT_RECEIVED", "PAYMENT_CREATED"}, types); diff != "" || len(ids) != 3 {
		t.Errorf("%d ids, (-want +got):\n%s", len(ids), diff)
	}
}

// An event of a charge that was paid before takes an order back to the value of the new event.
func TestEachCommandMakesANewChargeUnlessItNamesOne(t *testing.T) {
	t.Parallel()
	s := newServer(t, http.StatusOK)
	for _, args := range [][]string{
		{"PAYMENT_CREATED", "PAYMENT_RECEIVED"},
		{"PAYMENT_RECEIVED", "-sparse"},
		{"PAYMENT_RECEIVED", "-id", "evt_1"},
		{"PAYMENT_RECEIVED", "-id", "evt_1"},
		{"PAYMENT_RECEIVED", "-id", "evt_2"},
		{"PAYMENT_RECEIVED", "-set", "payment.id=pay_1"},
	} {
		if status, _, complaints := fake(append(args, "-to", s.url)...); status != 0 {
			t.Fatal(complaints)
		}
	}
	var got []string
	first := make(map[string]int)
	for i, e := range payments(t, s) {
		if _, known := first[e.Payment.ID]; !known {
			first[e.Payment.ID] = i
		}
		got = append(got, fmt.Sprint(first[e.Payment.ID]))
	}
	if diff := cmp.Diff([]string{"0", "0", "2", "3", "3", "5", "6"}, got); diff != "" {
		t.Errorf("each event is about the charge of the event (-want +got):\n%s", diff)
	}
	if string(s.bodies[3]) != string(s.bodies[4]) || len(payments(t, s)[0].Payment.ID) != 20 {
		t.Errorf("the event is not the same:\n%s\n%s", s.bodies[3], s.bodies[4])
	}
}

// A database remembers the account of its events, and parks those of another one: the developer's own must be the first.
func TestEventsNameNoAccountUnlessAsked(t *testing.T) {
	t.Parallel()
	s := newServer(t, http.StatusOK)
	_, types, _ := fake("types")
	for _, args := range [][]string{strings.Fields(types), append(strings.Fields(types), "-sparse")} {
		if status, _, complaints := fake(append(args, "-to", s.url)...); status != 0 {
			t.Fatal(complaints)
		}
	}
	if status, _, complaints := fake("PAYMENT_RECEIVED", "-to", s.url, "-set", "account.id=a-seller"); status != 0 {
		t.Fatal(complaints)
	}
	for i, body := range s.bodies {
		var e struct {
			Event   string
			Account *struct{ ID string }
		}
		if err := json.Unmarshal(body, &e); err != nil {
			t.Fatal(err)
		}
		switch asked := i == len(s.bodies)-1; {
		case !asked && e.Account != nil:
			t.Errorf("%s names the account %v", e.Event, *e.Account)
		case asked && (e.Account == nil || e.Account.ID != "a-seller"):
			t.Errorf("%s does not name the account that was asked for: %s", e.Event, body)
		}
	}
}

func TestWhatIsNotAnswered200Exits1(t *testing.T) {
	t.Parallel()
	broken, created, gone := newServer(t, http.StatusServiceUnavailable), newServer(t, http.StatusCreated), httptest.NewServer(nil)
	gone.Close()
	for _, test := range []struct{ why, url, token, says, summary string }{
		{"a failure", broken.url, token, `503 PAYMENT_RECEIVED evt_1: {"received":true}`, "1 of 1"},
		{"success, and not 200", created.url, token, "201 PAYMENT_RECEIVED evt_1", "1 of 1"},
		{"another token", broken.url, "another", "401 PAYMENT_RECEIVED evt_1: ", "1 of 1"},
		{"nobody listens", gone.URL, token, "no answer PAYMENT_RECEIVED evt_1: ", "1 of 1"},
	} {
		status, out, complaints := fakeWith(test.token, "-to", test.url, "PAYMENT_RECEIVED", "-id", "evt_1")
		if status != 1 || !strings.HasPrefix(out, test.says) || !strings.Contains(complaints, test.summary+" were not answered 200") {
			t.Errorf("%s: exit status %d, prints %q, %q", test.why, status, out, complaints)
		}
	}
	if n := len(broken.bodies); n != 1 {
		t.Errorf("%d attempts at an event", n)
	}
}

func TestEveryEventIsTriedThoughTheFirstFails(t *testing.T) {
	t.Parallel()
	s := newServer(t, http.StatusServiceUnavailable)
	if status, out, _ := fake("-to", s.url, "PAYMENT_CREATED", "PAYMENT_RECEIVED"); status != 1 || strings.Count(out, "503 ") != 2 {
		t.Errorf("exit status %d, prints %s", status, out)
	}
}

// What every such command refuses is tested with fixture.Command.
func TestWrongUseExits2AndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	to := []string{"-to", "http://localhost:1"}
	for _, test := range []struct {
		why  string
		args []string
		says string
	}{
		{"no URL", []string{"PAYMENT_RECEIVED"}, "give the URL of your server, as http://localhost:8080/webhooks/asaas"},
		{"a type that does not exist", append(to, "PAYMENT_RECIEVED"), `there is no event type "PAYMENT_RECIEVED": asaas-fake types prints them all`},
		{"a field that does not exist", append(to, "PAYMENT_RECEIVED", "-set", "payment.valeu=1"), "asaas-fake: PAYMENT_RECEIVED: there is no field payment.valeu; payment has: object, id"},
		{"a set of the id", append(to, "PAYMENT_RECEIVED", "-set", "id=evt_1"), "use -id"},
	} {
		status, out, complaints := fake(test.args...)
		if status != 2 || out != "" || !strings.Contains(complaints, test.says) || strings.Count(complaints, "\n") != 1 {
			t.Errorf("%s: exit status %d, prints %q, %q", test.why, status, out, complaints)
		}
	}
	if status, _, complaints := fakeWith("", append(to, "PAYMENT_RECEIVED")...); status != 2 || !strings.Contains(complaints, "ASAAS_WEBHOOK_TOKEN is not set: set it") {
		t.Errorf("without a token: exit status %d, %q", status, complaints)
	}
}

func TestTokenIsNeverPrinted(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-to", newServer(t, 500).url, "PAYMENT_RECEIVED"}, {"-help"}, {"-to", "http://localhost:1/", "nothing"}} {
		if _, out, complaints := fake(args...); strings.Contains(out+complaints, token) {
			t.Errorf("%v prints %s%s", args, out, complaints)
		}
	}
}

func TestTypesPrintsAllEventTypes(t *testing.T) {
	t.Parallel()
	status, out, _ := fakeWith("", "types")
	var types []asaas.EventType
	for name := range strings.Lines(out) {
		types = append(types, asaas.EventType(strings.TrimSpace(name)))
	}
	if diff := cmp.Diff(asaastest.Types(), types); status != 0 || diff != "" {
		t.Errorf("exit status %d, (-want +got):\n%s", status, diff)
	}
}

// A table of charges parks events of charges that are older than itself.
func TestAnEventAndItsChargeAreMadeToday(t *testing.T) {
	t.Parallel()
	for _, sparse := range []bool{false, true} {
		before := time.Now().Truncate(time.Second)
		body, err := new(maker).newEvent("PAYMENT_RECEIVED", "", sparse)
		if err != nil {
			t.Fatal(err)
		}
		e, err := asaas.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		at, err := e.(*asaas.PaymentEvent).DateCreated.Time()
		if err != nil || at.Before(before) || at.After(time.Now()) {
			t.Errorf("the event is of %s, %v", at, err)
		}
		if made := e.(*asaas.PaymentEvent).Payment.DateCreated; string(made) != at.Format(time.DateOnly) {
			t.Errorf("the charge was made on %s, and its event on %s", made, at)
		}
		if body, err = new(maker).newEvent("PAYMENT_RECEIVED", "", sparse, asaastest.Set("payment.dateCreated", "2026-01-02")); err != nil || !bytes.Contains(body, []byte("2026-01-02")) {
			t.Errorf("the day cannot be set: %v", err)
		}
	}
}

// Asaas sends an event again as it was. So does a person who runs the command again.
func TestAnEventWithTheSameIDHasTheSameBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		make := func() string {
			body, err := new(maker).newEvent("PAYMENT_RECEIVED", "evt_1", false, asaastest.Set("payment.value", 10))
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		first := make()
		time.Sleep(time.Hour)
		if diff := cmp.Diff(first, make()); diff != "" {
			t.Errorf("an hour later (-want +got):\n%s", diff)
		}
		time.Sleep(24 * time.Hour) // of another day, as the charge is
		if make() == first {
			t.Error("a day later it is still of the first day")
		}
	})
}
