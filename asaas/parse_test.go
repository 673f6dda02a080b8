package asaas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

func payment(t *testing.T, name string) *asaas.PaymentEvent {
	t.Helper()
	e, err := asaas.Parse(testdata(t, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	p, ok := e.(*asaas.PaymentEvent)
	if !ok {
		t.Fatalf("%s: got a %T", name, e)
	}
	return p
}

func TestAPaymentIsReadInFull(t *testing.T) {
	t.Parallel()
	e := payment(t, "card_confirmed_installment")
	if e.ID != "evt_15e444ff9b9ab9ec29294aa1abe68025&1501744820" {
		t.Errorf("the id is %q", e.ID)
	}
	if e.Account.Or(asaas.Account{}).OwnerID.Or("") != "5d2c7a10-6a1f-4e0b-9d55-0c1b7e2f9a31" {
		t.Errorf("the account is %v", e.Account)
	}
	p := e.Payment
	if cents := p.Value.Cents(); cents != 13334 {
		t.Errorf("the value is %d", cents)
	}
	if got := p.Description.Or(""); got != "Parcela 1 de 3.\r\nAssinatura anual — plano básico" {
		t.Errorf("the description is %q", got)
	}
	if p.InstallmentNumber.Or(0) != 1 || !p.PaymentDate.IsNull() || !p.Subscription.IsZero() {
		t.Errorf("got installment number %v, payment date %v, subscription %v", p.InstallmentNumber, p.PaymentDate, p.Subscription)
	}
	brand := p.CreditCard.Or(asaas.CreditCard{}).CreditCardBrand.Or("")
	if brand != "HIPERCARD" || brand.Known() {
		t.Errorf("an unknown brand is read as %q", brand)
	}
}

func TestAWholeNumberWithDecimalsIsRead(t *testing.T) {
	t.Parallel()
	discount, _ := payment(t, "boleto_overdue").Payment.Discount.Get()
	if days, ok := discount.DueDateLimitDays.Get(); !ok || days != 0 {
		t.Errorf("dueDateLimitDays 0.0 is read as %v", discount.DueDateLimitDays)
	}
}

func TestAMoneyThatCameUnaskedHasNoReference(t *testing.T) {
	t.Parallel()
	if p := payment(t, "pix_received_unasked").Payment; !p.ExternalReference.IsNull() || p.ExternalReference.Or("") != "" {
		t.Errorf("the reference is %v", p.ExternalReference)
	}
}

func TestTheLastEventNameCounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, event, kind, reason string }{
		{`{"event":"PAYMENT_CREATED"}`, "PAYMENT_CREATED", "*asaas.PaymentEvent", "the ordinary case"},
		{"{\n  \"event\" :\t\"PAYMENT_CREATED\"\n}", "PAYMENT_CREATED", "*asaas.PaymentEvent", "white space"},
		{`{"payment":{},"event":"PAYMENT_CREATED"}`, "PAYMENT_CREATED", "*asaas.PaymentEvent", "after the object"},
		{`{"event":"PAYMENT_CREATED","event":"NEWS"}`, "NEWS", "*asaas.UnknownEvent", "twice, the last one unknown"},
		{`{"event":"NEWS","event":"PAYMENT_CREATED"}`, "PAYMENT_CREATED", "*asaas.PaymentEvent", "twice, the last one known"},
		{`{"event":"PAYMENT_CREATED","event":"PAYMENT_RECEIVED"}`, "PAYMENT_RECEIVED", "*asaas.PaymentEvent", "twice, both known"},
		{`{"x":{"event":"NEWS"},"event":"PAYMENT_CREATED"}`, "PAYMENT_CREATED", "*asaas.PaymentEvent", "another one inside"},
		{`{"x":"\"event\":\"NEWS\"","event":"PAYMENT_CREATED"}`, "PAYMENT_CREATED", "*asaas.PaymentEvent", "another one in a text"},
		{`{"x":"event","event":"PAYMENT_CREATED"}`, "PAYMENT_CREATED", "*asaas.PaymentEvent", "its name as a text"},
		{`{"\u0065vent":"PAYMENT_\u0043REATED"}`, "PAYMENT_CREATED", "*asaas.PaymentEvent", "escapes"},
		{`{"event":"NEWS","payment":3}`, "NEWS", "*asaas.UnknownEvent", "an unknown event with a field that does not fit"},
		{`{"event":"NEWS","id":3,"account":"x"}`, "NEWS", "*asaas.UnknownEvent", "an unknown event with an envelope that does not fit"},
		{`{"payment":3,"event":"NEWS","x":{"event":"PAYMENT_CREATED"}}`, "NEWS", "*asaas.UnknownEvent", "a guess that does not decode"},
	} {
		e, err := asaas.Parse([]byte(tt.body))
		if err != nil {
			t.Errorf("%s: %v", tt.reason, err)
			continue
		}
		if got := asaas.Identify([]byte(tt.body)); got.Type != tt.event || reflect.TypeOf(e).String() != tt.kind {
			t.Errorf("%s: got %s as %T, want %s as %s", tt.reason, got.Type, e, tt.event, tt.kind)
		}
	}
}

func TestAnUnknownEventKeepsItsBody(t *testing.T) {
	t.Parallel()
	body := []byte(`{"id":"evt_1","event":"NEWS","dateCreated":"2026-08-08 20:45:13","news":[1,2]}`)
	e, err := asaas.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	u := e.(*asaas.UnknownEvent)
	if u.ID != "evt_1" || u.Event != "NEWS" || u.DateCreated != "2026-08-08 20:45:13" || string(u.Raw) != string(body) {
		t.Errorf("got %+v", u)
	}
	if again, err := json.Marshal(u); err != nil || string(again) != string(body) {
		t.Errorf("written back as %s, %v", again, err)
	}
	body[0] = 'x'
	if u.Raw[0] != '{' {
		t.Error("Raw shares the caller's body")
	}
}

func TestWhatIsNoEventIsAnError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, reason string }{
		{``, "nothing"},
		{`null`, "null"},
		{`[]`, "a list"},
		{`"PAYMENT_CREATED"`, "a text"},
		{`{}`, "no name"},
		{`{"event":""}`, "an empty name"},
		{`{"event":7}`, "a name that is no text"},
		{`{"event":null}`, "null for a name"},
		{`{"event":"PAYMENT_CREATED"`, "half a body"},
		{`{"event":"PAYMENT_CREATED"} {}`, "more than a body"},
		{`{"event":"PAYMENT_CREATED","payment":[]}`, "a payment that is a list"},
		{`{"event":"PAYMENT_CREATED","payment":{"value":1e400}}`, "an amount beyond everything"},
		{`{"event":"PAYMENT_CREATED","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "too deep"},
	} {
		if e, err := asaas.Parse([]byte(tt.body)); err == nil || e != nil || !strings.HasPrefix(err.Error(), "asaas: ") {
			t.Errorf("%s: got %v, %v", tt.reason, e, err)
		}
	}
}

func TestAnErrorTellsThePathAndNotTheValue(t *testing.T) {
	t.Parallel()
	_, err := asaas.Parse([]byte(`{"event":"PAYMENT_REFUNDED","payment":{"refunds":[{"value":"secret"}]}}`))
	var typeError *json.UnmarshalTypeError
	if !errors.As(err, &typeError) || typeError.Field != "payment.refunds.value" || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestIdentifyNamesWhateverIsReadable(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 8, 23, 45, 13, 0, time.UTC)
	for _, tt := range []struct {
		body   string
		want   idem.Event
		reason string
	}{
		{
			`{"id":"evt_d26e303b&1497003211","event":"PAYMENT_RECEIVED","dateCreated":"2026-08-08 20:45:13","payment":{"id":"pay_1"}}`,
			idem.Event{ID: "evt_d26e303b&1497003211", Type: "PAYMENT_RECEIVED", Key: "pay_1", OccurredAt: at},
			"an event",
		},
		{
			`{"id":"evt_1&1","event":"PAYMENT_RECEIVED","dateCreated":"2026-08-08 20:45:13","payment":{"id":"pay_1","value":"much"}}`,
			idem.Event{ID: "evt_1&1", Type: "PAYMENT_RECEIVED", Key: "pay_1", OccurredAt: at},
			"an event that does not decode has its own name, and waits for its turn like others of its charge",
		},
		{
			`{"id":"evt_1&1","event":"PAYMENT_RECEIVED","account":7,"dateCreated":"2026-08-08 20:45:13"}`,
			idem.Event{ID: "evt_1&1", Type: "PAYMENT_RECEIVED", OccurredAt: at},
			"an envelope that does not decode",
		},
		{
			`{"id":"evt_1&1","event":"NEWS","dateCreated":"soon"}`,
			idem.Event{ID: "evt_1&1", Type: "NEWS"},
			"an unknown event at an unknown time",
		},
		{`{"event":"PAYMENT_RECEIVED"}`, idem.Event{ID: "sha256", Type: "PAYMENT_RECEIVED"}, "no id"},
		{`{"id":"","event":"PAYMENT_RECEIVED"}`, idem.Event{ID: "sha256", Type: "PAYMENT_RECEIVED"}, "an empty id"},
		{`{"id":7,"event":"PAYMENT_RECEIVED"}`, idem.Event{ID: "sha256", Type: "PAYMENT_RECEIVED"}, "an id that is no text"},
		{`{"id":"evt_1&1"}`, idem.Event{ID: "evt_1&1"}, "no name"},
		{`{"id":"evt_\ud800"}`, idem.Event{ID: idem.BodyID([]byte(`"evt_\ud800"`))}, "an id that is no text"},
		{`{"id":"evt_\ud801"}`, idem.Event{ID: idem.BodyID([]byte(`"evt_\ud801"`))}, "another one, which decodes to the same"},
		{"{\"id\":\"evt_\xff\"}", idem.Event{ID: idem.BodyID([]byte("\"evt_\xff\""))}, "bytes that are no text"},
		{`{"id":"evt_\ud83d\ude00"}`, idem.Event{ID: "evt_😀"}, "an id in two halves"},
		{`{"id":"evt_1&1","event":"PAYMENT_RECEIVED"`, idem.Event{ID: "sha256"}, "half a body"},
		{``, idem.Event{ID: "sha256"}, "nothing"},
	} {
		body := []byte(tt.body)
		tt.want.Source, tt.want.Payload = "asaas", body
		if tt.want.ID == "sha256" {
			tt.want.ID = idem.BodyID(body)
		}
		got := asaas.Identify(body)
		got.OccurredAt = got.OccurredAt.UTC()
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

// What Identify finds without decoding is what decoding finds.
func FuzzIdentify(f *testing.F) {
	for _, name := range bodies {
		f.Add(testdata(f, name))
	}
	f.Add([]byte(`{"event":"NEWS","event":"PAYMENT_CREATED","ID":"a"}`))
	f.Add([]byte(`{"payment":{"id":"a"},"id":"1","Payment":{"ID":"b","id":null},"EVENT":"PAYMENT_CREATED","event":7,"payment":{}}`))
	f.Add([]byte(`{"event":"BILL_PAID","bill":{"id":7},"\u0062ill":{"\u0069d":"\u0037\ud800"}}`))
	f.Add([]byte(`{"event":"PAYMENT_CREATED","payment":{"value":1e400}}`))
	f.Add([]byte(`{"event":"PHONE_RECHARGE_CONFIRMED","mobilePhoneRecharge":{"id":"a"}}`))
	f.Add([]byte("{\"event\":\"\xff\",\"id\":\"\\u0000\"}"))
	f.Add([]byte(`{"event":"PAYMENT_CREATED","ſplit":1,"Key":{}} `))
	f.Fuzz(func(t *testing.T, body []byte) {
		got := asaas.Identify(body)
		if got.ID == "" || string(got.Payload) != string(body) {
			t.Errorf("%q is named %+v", body, got)
		}
		e, err := asaas.Parse(body)
		if !json.Valid(body) {
			if err == nil {
				t.Errorf("%q is no JSON, and decodes", body)
			}
			return
		}
		var said asaas.Envelope
		var typeError *json.UnmarshalTypeError
		if err := json.Unmarshal(body, &said); err != nil && !errors.As(err, &typeError) {
			return // too deep
		}
		if said.ID == "" {
			said.ID = idem.BodyID(body)
		}
		if said.Event == "PHONE_RECHARGE_CONFIRMED" {
			said.Event = "MOBILE_" + said.Event // its other name
		}
		at, _ := said.DateCreated.Time()
		if strings.ContainsRune(said.ID, utf8.RuneError) && strings.HasPrefix(got.ID, "sha256:") {
			said.ID = got.ID // it may stand for another id, too
		}
		if got.ID != said.ID || got.Type != string(said.Event) || !got.OccurredAt.Equal(at) {
			t.Errorf("%q is named %s %s of %v, want %s %s of %v", body, got.Type, got.ID, got.OccurredAt, said.Event, said.ID, at)
		}
		if err != nil {
			return
		}
		if got.Key != asaas.KeyOf(e) {
			t.Errorf("%q is about %q, and decoded about %q", body, got.Key, asaas.KeyOf(e))
		}
		if _, unknown := e.(*asaas.UnknownEvent); unknown == asaas.EventType(got.Type).Known() {
			t.Errorf("%q: a %s is a %T", body, got.Type, e)
		}
	})
}

// bodies are the names of the bodies in testdata.
var bodies = []string{
	"pix_received_unasked", "card_confirmed_installment", "boleto_overdue", "pix_refunded",
	"chargeback_requested", "split_cancelled", "split_done", "subscription_split_blocked", "deleted", "partially_refunded_with_split",
	"subscription_split_disabled", "subscription_created_2025", "invoice_authorized",
	"transfer_done_pix", "transfer_created_internal", "bill_failed", "anticipation_credited",
	"mobile_phone_recharge_confirmed", "account_status_commercial_info_expired", "checkout_paid",
	"balance_value_blocked", "balance_value_unblocked_new_key", "internal_transfer_debit",
	"access_token_disabled", "access_token_disabled_as_documented", "pix_automatic_authorization_created",
	"pix_automatic_instruction_refused", "pix_automatic_eligibility_updated",
}

// news are the fields in testdata that this package does not know.
var news = []string{"payment.antifraud", "payment.split.1.taxes"}

func TestNoKnownFieldIsLost(t *testing.T) {
	t.Parallel()
	for _, name := range bodies {
		body := testdata(t, name)
		e, err := asaas.Parse(body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		written, err := json.Marshal(e)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want, got := leaves(t, body), leaves(t, written)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-sent +written back):\n%s", name, diff)
		}
	}
}

// leaves maps the path of every value in a body to the value: numbers by what
// they are worth, everything else as it is. News are left out.
func leaves(t *testing.T, body []byte) map[string]string {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	walk("", v, out)
	return out
}

func walk(path string, v any, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		out[path] = "object"
		for name, field := range v {
			if at := join(path, name); !slices.Contains(news, at) {
				walk(at, field, out)
			}
		}
	case []any:
		out[path] = "list"
		for i, element := range v {
			walk(join(path, fmt.Sprint(i)), element, out)
		}
	case json.Number:
		worth, _ := new(big.Rat).SetString(v.String())
		out[path] = worth.RatString()
	default:
		out[path] = fmt.Sprintf("%#v", v)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
