package asaastest_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// panicOf returns the text that f panics with, "" if it does not.
func panicOf(f func()) (said string) {
	defer func() {
		if v := recover(); v != nil {
			said = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

func TestEveryBodyIsAnEventOfItsOwn(t *testing.T) {
	t.Parallel()
	const each = 200
	var mu sync.Mutex
	var tests sync.WaitGroup
	ids := make(map[string]bool)
	for range 4 {
		tests.Go(func() {
			for range each {
				id := asaas.Identify(asaastest.Event("PAYMENT_RECEIVED")).ID
				mu.Lock()
				ids[id] = true
				mu.Unlock()
			}
		})
	}
	tests.Wait()
	if len(ids) != 4*each {
		t.Errorf("%d bodies have %d ids", 4*each, len(ids))
	}
}

func TestIDsLookLikeAsaass(t *testing.T) {
	t.Parallel()
	for _, eventType := range asaastest.Types() {
		body := asaastest.Sparse(eventType)
		id := asaas.Identify(body).ID
		hash, number, _ := strings.Cut(strings.TrimPrefix(id, "evt_"), "&")
		want := md5.Sum([]byte(eventType))
		if hash != hex.EncodeToString(want[:]) {
			t.Errorf("%s: %s does not have the hash of the type", eventType, id)
		}
		if n, err := strconv.ParseInt(number, 10, 64); err != nil || n <= 0 {
			t.Errorf("%s: %s does not end in a number", eventType, id)
		}
		if !bytes.Contains(body, []byte(id)) {
			t.Errorf("%s: the & of the id is escaped", eventType)
		}
	}
}

func TestBodiesDifferOnlyInTheirIDs(t *testing.T) {
	t.Parallel()
	id := asaastest.Set("id", "evt_1")
	for _, eventType := range asaastest.Types() {
		first, second := asaastest.Event(eventType, id), asaastest.Event(eventType, id)
		if !bytes.Equal(first, second) {
			t.Errorf("two bodies of %s differ:\n%s\n%s", eventType, first, second)
		}
	}
}

func TestAnIDAndATypeMayBeSet(t *testing.T) {
	t.Parallel()
	e := asaas.Identify(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("id", "evt_1"), asaastest.Set("event", "PAYMENT_ON_THE_MOON")))
	parsed, err := asaas.Parse(e.Payload)
	if _, unknown := parsed.(*asaas.UnknownEvent); err != nil || e.ID != "evt_1" || e.Type != "PAYMENT_ON_THE_MOON" || !unknown {
		t.Errorf("it is %s, a %s of type %T, %v", e.ID, e.Type, parsed, err)
	}
}

func TestWhatTheEventTypeSaysHolds(t *testing.T) {
	t.Parallel()
	for eventType, want := range map[asaas.EventType]asaas.PaymentStatus{
		"PAYMENT_CREATED":              "PENDING",
		"PAYMENT_RECEIVED":             "RECEIVED",
		"PAYMENT_OVERDUE":              "OVERDUE",
		"PAYMENT_CHARGEBACK_REQUESTED": "CHARGEBACK_REQUESTED",
	} {
		for _, body := range [][]byte{asaastest.Event(eventType), asaastest.Sparse(eventType)} {
			event, err := asaas.Parse(body)
			if err != nil {
				t.Fatal(err)
			}
			if got := event.(*asaas.PaymentEvent).Payment.Status; got != want {
				t.Errorf("the charge of a %s is %s, want %s", eventType, got, want)
			}
		}
	}
	event, err := asaas.Parse(asaastest.Event("INTERNAL_TRANSFER_DEBIT"))
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := json.Marshal(event); !bytes.Contains(data, []byte(`"value":-`)) {
		t.Errorf("the amount of a debit is not negative: %s", data)
	}
}

func TestMistakesSayWhatThereIs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why    string
		make   func()
		starts string
		has    string
	}{
		{"an event type", func() { asaastest.Event("PAYMENT_RECIEVED") }, `asaastest: there is no event type "PAYMENT_RECIEVED"; there are: PAYMENT_CREATED`, "PAYMENT_RECEIVED"},
		{"a field", func() { asaastest.Sparse("PAYMENT_RECEIVED", asaastest.Set("payment.valeu", 1)) }, "asaastest: PAYMENT_RECEIVED: there is no field payment.valeu; payment has: object, id", "value"},
		{"a kind", func() { asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.value", "10.50")) }, "asaastest: PAYMENT_RECEIVED: payment.value is a number, and the value given is a string", "json.RawMessage"},
		{"a URL", func() { asaastest.Request("http://a b/", "a token", nil) }, "asaastest: ", "invalid character"},
	} {
		if got := panicOf(test.make); !strings.HasPrefix(got, test.starts) || !strings.Contains(got, test.has) {
			t.Errorf("%s: panics with %q, want it to start with %q and say %q", test.why, got, test.starts, test.has)
		}
	}
}

func TestMoneyAndDatesAreValuesToSet(t *testing.T) {
	t.Parallel()
	event, err := asaas.Parse(asaastest.Event("PAYMENT_RECEIVED",
		asaastest.Set("payment.value", asaas.Cents(1050)),
		asaastest.Set("payment.dueDate", asaas.Date("2026-12-24")),
		asaastest.Set("payment.status", asaas.PaymentStatusReceivedInCash)))
	if err != nil {
		t.Fatal(err)
	}
	p := event.(*asaas.PaymentEvent).Payment
	if p.Value != asaas.Cents(1050) || p.DueDate != "2026-12-24" || p.Status != asaas.PaymentStatusReceivedInCash {
		t.Errorf("got %s, %s, %s", p.Value, p.DueDate, p.Status)
	}
}

func TestRequestsAreGoodForAServer(t *testing.T) {
	t.Parallel()
	body := asaastest.Event("PAYMENT_RECEIVED")
	events := asaas.NewDispatcher("a token")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e, err := events.Open(r); err != nil || !bytes.Equal(e.Payload, body) {
			http.Error(w, fmt.Sprint(err), http.StatusTeapot)
		}
	}))
	defer server.Close()
	answer, err := server.Client().Do(asaastest.Request(server.URL+"/webhooks/asaas", "a token", body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("answered %s", answer.Status)
	}
}
