package zeltapay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/zeltapay"
)

func TestEveryBodyIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file string
		want idem.Event
		kind string
	}{
		{
			"payment_success_flat_1.0.0.json",
			idem.Event{ID: "evt_0f1e2d3c4b5a6978", Type: "payment.success", Key: "pl_aa11bb22cc33dd44", OccurredAt: time.Date(2025, 3, 4, 15, 6, 7, 890e6, time.UTC)},
			"*zeltapay.PaymentEvent",
		},
		{
			"payment_success_flat_1.1.0.json",
			idem.Event{ID: "evt_1a2b3c4d5e6f7081", Type: "payment.success:test", Key: "pl_1122334455667788", OccurredAt: time.Date(2026, 2, 3, 4, 5, 6, 7e6, time.UTC)},
			"*zeltapay.PaymentEvent",
		},
		{
			"payment_success_nested.json",
			idem.Event{ID: "payment.success:txn_31415926", Type: "payment.success", Key: "pl_99aabbccddeeff00", OccurredAt: time.Date(2026, 2, 3, 12, 30, 45, 0, time.UTC)},
			"*zeltapay.PaymentEvent",
		},
		{
			"payment_success_nested_null_email.json",
			idem.Event{ID: "payment.success:txn_31415927", Type: "payment.success", Key: "pl_99aabbccddeeff01", OccurredAt: time.Date(2026, 2, 3, 17, 31, 0, 0, time.UTC)},
			"*zeltapay.PaymentEvent",
		},
		{
			"webhook_ping.json",
			idem.Event{ID: "evt_00000000000000aa", Type: "webhook.ping", OccurredAt: time.Date(2025, 3, 4, 15, 0, 0, 0, time.UTC)},
			"*zeltapay.PingEvent",
		},
		{
			"unknown_type.json",
			idem.Event{ID: "evt_00000000000000bb", Type: "payment_link.archived", OccurredAt: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)},
			"*zeltapay.UnknownEvent",
		},
		{
			"unknown_fields.json",
			idem.Event{ID: "evt_00000000000000cc", Type: "payment.success", Key: "pl_aa11bb22cc33dd55", OccurredAt: time.Date(2026, 3, 4, 15, 6, 7, 890e6, time.UTC)},
			"*zeltapay.PaymentEvent",
		},
	} {
		got := zeltapay.Identify(read(t, "testdata/"+c.file))
		if kind := fmt.Sprintf("%T", parsed(t, got.Payload)); kind != c.kind {
			t.Errorf("%s decodes into %s, want %s", c.file, kind, c.kind)
		}
		got.Payload, got.OccurredAt = nil, got.OccurredAt.UTC()
		c.want.Source = "zeltapay"
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.file, diff)
		}
	}
}

func TestWhatCannotBeReadStillHasAName(t *testing.T) {
	t.Parallel()
	const byContent = ""
	for _, c := range []struct{ why, body, id, eventType string }{
		{"empty", ``, byContent, ""},
		{"not JSON", `eventId=evt_1`, byContent, ""},
		{"cut off", `{"eventId":"evt_1","type":"payment.success"`, byContent, ""},
		{"not an object", `["payment.success"]`, byContent, ""},
		{"null", `null`, byContent, ""},
		{"no type", `{"eventId":"evt_1"}`, "evt_1", ""},
		{"a type that is no text", `{"eventId":"evt_1","type":{"name":"payment.success"}}`, "evt_1", ""},
		{"an id that is no text", `{"eventId":7,"type":"webhook.ping"}`, byContent, "webhook.ping"},
		{"a transaction that is none", `{"type":"payment.success","transaction":[]}`, byContent, "payment.success"},
		{"an amount that is none still has its id", `{"eventId":"evt_1","type":"payment.success","transaction":{"amount":"a lot"}}`, "evt_1", "payment.success"},
		{"a nested one too", `{"type":"payment.success","paymentLink":{"amount":1.5},"transaction":{"id":"txn_1"}}`, "payment.success:txn_1", "payment.success"},
		{"other types may happen twice to a transaction", `{"type":"payment.refunded","transaction":{"id":"txn_1"}}`, byContent, "payment.refunded"},
		{"too deep", `{"type":"webhook.ping","x":` + strings.Repeat("[", 20000), byContent, ""},
	} {
		got := zeltapay.Identify([]byte(c.body))
		if c.id == byContent {
			c.id = idem.BodyID([]byte(c.body))
		}
		if got.ID != c.id || got.Type != c.eventType {
			t.Errorf("%s: named %q of type %q, want %q of type %q", c.why, got.ID, got.Type, c.id, c.eventType)
		}
	}
}

func TestTheWholeDecodingDecidesTheType(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"metadata":{"type":"webhook.ping"},"type":"payment.success"}`:               "*zeltapay.PaymentEvent",
		`{"note":"\"type\":\"webhook.ping\"","type":"payment.success"}`:               "*zeltapay.PaymentEvent",
		`{"reason":{"type":"payment.success"},"type":"payment_link.archived"}`:        "*zeltapay.UnknownEvent",
		`{"type":"payment.success","type":"webhook.ping"}`:                            "*zeltapay.PingEvent",
		`{"type":"webhook\u002eping"}`:                                                "*zeltapay.PingEvent",
		`{"customer":{"type":"webhook.ping"},"transaction":1,"type":"something.new"}`: "*zeltapay.UnknownEvent",
		"{\n  \"type\" : \"webhook.ping\"\n}":                                         "*zeltapay.PingEvent",
	} {
		if got := fmt.Sprintf("%T", parsed(t, []byte(body))); got != want {
			t.Errorf("%s is a %s, want a %s", body, got, want)
		}
	}
}

func TestKnownFieldsSurviveARoundTrip(t *testing.T) {
	t.Parallel()
	unknown := map[string][]string{"": {"livemode"}, "transaction": {"fee"}, "customer": {"phone"}}
	for _, name := range bodies(t) {
		body := read(t, name)
		want, got := tree(t, body), tree(t, encoded(t, parsed(t, body)))
		if strings.Contains(name, "unknown_fields") {
			for object, fields := range unknown {
				for _, field := range fields {
					drop(want, object, field)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-sent +encoded):\n%s", name, diff)
		}
	}
}

// tree is JSON with its numbers as they were written.
func tree(t *testing.T, data []byte) (v map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func drop(tree map[string]any, object, field string) {
	if object != "" {
		tree = tree[object].(map[string]any)
	}
	delete(tree, field)
}

func TestUnknownEventKeepsItsBytes(t *testing.T) {
	t.Parallel()
	body := read(t, "testdata/unknown_type.json")
	e, ok := parsed(t, body).(*zeltapay.UnknownEvent)
	if !ok {
		t.Fatalf("parsed as %T", e)
	}
	if want := bytes.TrimSpace(body); !bytes.Equal(e.Raw, want) {
		t.Errorf("Raw is %s", e.Raw)
	}
	if e.Type != "payment_link.archived" || e.EventID.Or("") != "evt_00000000000000bb" {
		t.Errorf("the envelope is %+v", e.Envelope)
	}
}

func TestUnknownEventMayUseTheEnvelopeDifferently(t *testing.T) {
	t.Parallel()
	e := parsed(t, []byte(`{"eventId":7,"type":"v2.thing","createdAt":1640995200}`))
	if raw := string(e.(*zeltapay.UnknownEvent).Raw); !strings.Contains(raw, "1640995200") {
		t.Errorf("Raw is %s", raw)
	}
}

func TestParseTellsWhatToDo(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"eventId":"evt_1"}`: "no JSON object with a type",
		`{`:                   "no JSON object with a type",
		`{"type":"payment.success","transaction":{"amount":1.5}}`: "number with a fraction",
		`{"type":"payment.success","customer":"Ana"}`:             "newer version",
	} {
		if _, err := zeltapay.Parse([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say %q", body, err, want)
		}
	}
}

// seen is what the accessors say of one event.
type seen struct {
	LinkID, TransactionID, Currency, Method, Name, Email, OrderID string

	Amount    zeltapay.Cents
	HasAmount bool
	PaidAt    zeltapay.Time
	IsTest    bool
}

func see(e *zeltapay.PaymentEvent) seen {
	s := seen{
		LinkID: e.LinkID(), TransactionID: e.TransactionID(), Currency: e.Currency(), Method: e.PaymentMethod(),
		Name: e.CustomerName(), Email: e.CustomerEmail(), PaidAt: e.PaidAt(), IsTest: e.IsTest(),
	}
	s.Amount, s.HasAmount = e.Amount()
	s.OrderID, _ = e.LinkMetadata().String("orderId")
	return s
}

func TestAccessorsReadBothLayouts(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]seen{
		"payment_success_flat_1.0.0.json": {
			LinkID: "pl_aa11bb22cc33dd44", TransactionID: "nmi_778899", Currency: "USD", Method: "credit_card",
			Name: "Ana Quintero", Email: "ana@example.com", OrderID: "A-1001",
			Amount: 12550, HasAmount: true, PaidAt: "2025-03-04T15:06:05.120Z",
		},
		"payment_success_flat_1.1.0.json": {
			LinkID: "pl_1122334455667788", TransactionID: "yap_445566", Currency: "USD", Method: "yappy", Name: "Luis Batista",
			Amount: 100, HasAmount: true, PaidAt: "2026-02-03T04:05:05.000Z", IsTest: true,
		},
		"payment_success_nested.json": {
			LinkID: "pl_99aabbccddeeff00", TransactionID: "txn_31415926", Method: "card", Email: "eva@example.com", OrderID: "A-1002",
			Amount: 2500, HasAmount: true, PaidAt: "2026-02-03T12:30:45.000Z",
		},
		"payment_success_nested_null_email.json": {
			LinkID: "pl_99aabbccddeeff01", TransactionID: "txn_31415927", Method: "yappy",
			Amount: 0, HasAmount: true, PaidAt: "2026-02-03T12:31:00-05:00",
		},
	} {
		got := see(parsed(t, read(t, "testdata/"+file)).(*zeltapay.PaymentEvent))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestAccessorsOfAnEmptyEventSayNothing(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(seen{}, see(new(zeltapay.PaymentEvent))); diff != "" {
		t.Error(diff)
	}
}
