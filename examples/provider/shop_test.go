package provider

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/examples/provider/woovi"
	"github.com/paghooks/paghooks/examples/provider/woovi/woovitest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/provider"
)

// signature is of testdata/body.json, from the tests of OpenPix's SDKs.
const signature = "lL2nnXgmLFGgxJ8+jCDguqouU4ucrIxYJcU5SPrJFaNcJajTJHYVldqc/z4YFIjAjtPEALe699WosgPY08W7CLpidvtm06Qwa4YMB0l/" +
	"DcTS93O91NdSH/adjugEKiOb76Zj/0jB8mqOmWCFYbweOBa17bssuEkd5Lw7Q5L314Y="

func file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAPublishedSignatureVerifiesAndNoOther(t *testing.T) {
	t.Parallel()
	body, key := file(t, "body.json"), file(t, "key.pem")
	for _, tt := range []struct {
		why, body, header, value string
		ok                       bool
	}{
		{"as published", body, "X-Webhook-Signature", signature, true},
		{"in lower case", body, "x-webhook-signature", signature, true},
		{"names changed, the signature kept", file(t, "body_renamed.json"), "X-Webhook-Signature", signature, false},
		{"one byte more", body + " ", "X-Webhook-Signature", signature, false},
		{"another signature", body, "X-Webhook-Signature", strings.Repeat("A", 172), false},
		{"no signature", body, "X-Other", signature, false},
		{"the older header alone", body, "X-OpenPix-Signature", signature, false},
	} {
		h := http.Header{tt.header: {tt.value}}
		if err := woovi.Verify(h, []byte(tt.body), key); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.why, err)
		}
	}
}

func TestTheOlderSignatureVerifiesWhereItIsChosen(t *testing.T) {
	t.Parallel()
	body := `{"data_criacao":"2021-08-10T20:32:14.429Z","evento":"teste_webhook"}`
	h := http.Header{"X-Openpix-Signature": {"jgR2XF0PKDiAwHP1s+TryvxMySQ="}}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header = h
	events := woovi.NewDispatcher("hmac-secret-key")
	if _, err := events.Open(r); err == nil {
		t.Error("it verifies though RSA is asked for")
	}
	r = httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header = h
	events.Scheme = woovi.SchemeHMAC
	if e, err := events.Open(r); err != nil || e.Type != provider.PingType || !events.Ignores(e.Type) {
		t.Errorf("the test of the address is %v, %v", e, err)
	}
}

// Registering a webhook sends the name of a real event without anything in it.
func TestATestOfTheAddressIsNoPayment(t *testing.T) {
	t.Parallel()
	body := []byte(`{"data_criacao":"2021-08-10T20:32:14.429Z","event":"OPENPIX:CHARGE_COMPLETED"}`)
	e := woovi.Identify(body)
	if e.Type != provider.PingType {
		t.Errorf("it is a %s", e.Type)
	}
	if decoded, err := woovi.Parse(body); err != nil || reflect.TypeOf(decoded) != reflect.TypeFor[*woovi.UnknownEvent]() {
		t.Errorf("it decodes as %T, %v", decoded, err)
	}
	events := Events(file(t, "key.pem"))
	if work, err := events.Route(e); work != nil || err != nil || len(events.Drift()) > 0 {
		t.Errorf("it has a handler, %v, or is drift: %v", err, events.Drift())
	}
}

// leaves are the values of a body, by their path.
func leaves(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]any)
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if object, ok := v.(map[string]any); ok {
			for name := range maps.Keys(object) {
				walk(path+"."+name, object[name])
			}
			return
		}
		out[path] = v
	}
	walk("", v)
	return out
}

func TestNoLeafIsLost(t *testing.T) {
	t.Parallel()
	bodies := [][]byte{[]byte(strings.Replace(file(t, "body.json"), "{", `{"event":"OPENPIX:CHARGE_COMPLETED",`, 1))}
	for _, eventType := range woovitest.Types() {
		bodies = append(bodies, woovitest.Event(eventType), woovitest.Sparse(eventType))
	}
	if len(bodies) != 15 {
		t.Errorf("there are %d bodies", len(bodies))
	}
	for _, body := range bodies {
		e, err := woovi.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(leaves(t, body), leaves(t, again)); diff != "" {
			t.Errorf("%T (-sent +kept):\n%s", e, diff)
		}
	}
}

func TestAnAliasIsTheSameEvent(t *testing.T) {
	t.Parallel()
	e := woovi.Identify([]byte(`{"event":"woovi:DISPUTE_CREATED","dispute":{"endToEndId":"E1"}}`))
	if e.Type != string(woovi.EventOpenpixDisputeCreated) || e.ID != "OPENPIX:DISPUTE_CREATED:E1" || e.Key != "E1" {
		t.Errorf("it is %v", e)
	}
}

func TestAPaymentIsBookedOnceHoweverOftenItIsDelivered(t *testing.T) {
	t.Parallel()
	key := key(t)
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `create table payments (charge_id text primary key, cents bigint)`); err != nil {
		t.Fatal(err)
	}
	shop := idem.NewInbox(pool, Events(key))
	shop.WorkFirst = true
	body := woovitest.Event(woovi.EventOpenpixChargeCompleted)
	for range 2 {
		w := httptest.NewRecorder()
		shop.ServeHTTP(w, woovitest.Request("http://shop.example/webhooks/woovi", key, bytes.Clone(body)))
		if w.Code != http.StatusOK {
			t.Fatalf("got %d: %s", w.Code, w.Body)
		}
	}
	var booked, cents int
	if err := pool.QueryRow(t.Context(), `select count(*), sum(cents) from payments`).Scan(&booked, &cents); err != nil || booked != 1 || cents != 1000 {
		t.Errorf("booked %d payments of %d cents, %v", booked, cents, err)
	}
}

// A charge stands in an event twice, and without the first amount alone the event is parked.
func TestNoHandlerSeesAnAmountThatWasNotSent(t *testing.T) {
	t.Parallel()
	for path, parked := range map[string]bool{"charge.value": true, "pix.charge.value": false} {
		body := woovitest.Event(woovi.EventOpenpixChargeCompleted, woovitest.Delete(path))
		e := new(woovi.ChargeEvent)
		if err := json.Unmarshal(body, e); err != nil {
			t.Fatal(err)
		}
		if err := e.Check(body); (err != nil) != parked {
			t.Errorf("without %s it is parked: %t, %v", path, err != nil, err)
		}
		if amount, sent := e.Pix.Or(woovi.Pix{}).Charge.Or(woovi.PixCharge{}).Value.Get(); sent != parked || sent && amount == 0 {
			t.Errorf("without %s the charge of the Pix has %d, %t", path, amount, sent)
		}
	}
}
