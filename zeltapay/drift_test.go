package zeltapay_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// change is something that Zelta Pay might do to its payments one day.
type change struct {
	reason    string
	old, new  string // what is replaced in the body, once
	state     string // what becomes of the event
	lastError string // the path that it tells
	found     string // the findings
}

var changes = []change{
	{"nothing", "", "", "done", "", ""},
	{"an unknown event type", `"payment.success"`, `"payment.refunded"`, "unhandled", "", "unknown_event "},
	{"an unknown field", `"accountId"`, `"livemode":true,"accountId"`, "done", "", "unknown_field livemode"},
	{"an unknown field deep inside", `"isTest": true`, `"isTest":true,"fee":{"amount":1}`, "done", "", "unknown_field transaction.fee"},
	{"an unknown family key", `"transaction":`, `"charge":`, "parked", "transaction is missing", "unknown_field charge, missing_required transaction"},
	{"null for an amount", `"amount": 100`, `"amount":null`, "parked", "transaction.amount is null", "unexpected_null transaction.amount"},
	{"null, which may be anywhere", `"isTest": true`, `"isTest":null`, "done", "", ""},
	{"metadata of every kind", `"metadata": {}`, `"metadata":{"luis@example.com":1,"x":null,"y":[1]}`, "done", "", ""},
	{"an amount as a string", `"amount": 100`, `"amount":"100"`, "done", "", "changed_type transaction.amount"},
	{"an amount with cents of its own", `"amount": 100`, `"amount":1.5`, "parked", "transaction.amount", "changed_type transaction.amount"},
	{"an amount as an object", `"amount": 100`, `"amount":{"value":100}`, "parked", "transaction.amount", "changed_type transaction.amount"},
	{"an id as a number", `"pl_1122334455667788"`, `1122`, "parked", "paymentLinkId", "changed_type paymentLinkId"},
	{"a time as a number", `"paidAt": "2026-02-03T04:05:05.000Z"`, `"paidAt":1770091505`, "parked", "transaction.paidAt", "changed_type transaction.paidAt"},
	{"a bool as a string", `"isTest": true`, `"isTest":"yes"`, "parked", "transaction.isTest", "changed_type transaction.isTest"},
	{"an object as a list", `"metadata": {}`, `"x":1,"customer":[]`, "parked", "customer", "changed_type customer, unknown_field x"},
	{"metadata as a string", `"metadata": {}`, `"metadata":"x"`, "parked", "metadata", "changed_type metadata"},
	{"no JSON any more", `"eventId"`, `"eventId`, "parked", "JSON that is not whole", "unreadable "},
}

func TestNoChangeLosesAnEventOrIsHandledHalf(t *testing.T) {
	t.Parallel()
	pool, h := shop(t)
	original := string(read(t, "testdata/payment_success_flat_1.1.0.json"))
	for _, c := range changes {
		body := strings.Replace(original, c.old, c.new, 1)
		if body == original && c.old != "" {
			t.Fatalf("%s: there is no %s", c.reason, c.old)
		}
		if _, err := pool.Exec(t.Context(), `truncate payments, idem_events, idem_payloads`); err != nil {
			t.Fatal(err)
		}
		if status, answer := deliver(h, []byte(body), "secret"); status != http.StatusOK {
			t.Errorf("%s: Zelta Pay is answered %d %s", c.reason, status, answer)
		}
		var state, lastError, kept string
		var handled int
		err := pool.QueryRow(t.Context(), `select state, coalesce(last_error, ''), coalesce(convert_from(body, 'UTF8'), ''), (select count(*) from payments)
			from idem_events left join idem_payloads using (event)`).Scan(&state, &lastError, &kept, &handled)
		if err != nil || state != c.state || !strings.Contains(lastError, c.lastError) || c.lastError == "" && lastError != "" {
			t.Errorf("%s: it is %s, %q, %v; want %s, %q", c.reason, state, lastError, err, c.state, c.lastError)
		}
		if done := state == "done"; (handled == 1) != done || !done && kept != body {
			t.Errorf("%s: handled %d times, kept %q", c.reason, handled, kept)
		}
	}
}

func TestDriftIsWhatWasSeenAndNothingElse(t *testing.T) {
	t.Parallel()
	original := string(read(t, "testdata/payment_success_flat_1.1.0.json"))
	for _, c := range changes {
		d := zeltapay.NewDispatcher("secret")
		d.AllowTest = true // the body is a test payment
		if got := driftOf(d, strings.Replace(original, c.old, c.new, 1)); !cmp.Equal(got, c.found) {
			t.Errorf("%s: found %q, want %q", c.reason, got, c.found)
		}
	}
}

// driftOf lists "kind path" of what d finds in a body.
func driftOf(d *zeltapay.Dispatcher, body string) string {
	_, _ = d.Route(zeltapay.Identify([]byte(body)))
	var got []string
	for _, f := range d.Drift() {
		got = append(got, string(f.Kind)+" "+f.Path)
	}
	return strings.Join(got, ", ")
}

func TestBodiesAsDocumentedHaveNoDrift(t *testing.T) {
	t.Parallel()
	for _, name := range bodies(t) {
		if strings.Contains(name, "unknown") {
			continue
		}
		if got := driftOf(zeltapay.NewDispatcher("secret"), string(read(t, name))); got != "" {
			t.Errorf("%s: found %s", name, got)
		}
	}
}

func TestDispatchLooksToo(t *testing.T) {
	t.Parallel()
	d := zeltapay.NewDispatcher("secret")
	_ = d.Dispatch(t.Context(), nil, zeltapay.Identify([]byte(`{"type":"payment.refunded"}`)))
	if len(d.Drift()) != 1 || d.Drift()[0].EventType != "payment.refunded" {
		t.Errorf("found %+v", d.Drift())
	}
}

// Each field of each layout in turn is null, and is absent.
func TestOnlyWhatAnEventIsNothingWithoutParksItWhereItIsNullOrAbsent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why   string
		body  []byte
		parks []string
	}{
		{"flat: two ids, of which one is enough", zeltapaytest.Flat.Event("payment.success"), []string{"transaction", "transaction.amount"}},
		{
			"flat, named by its link alone",
			zeltapaytest.Flat.Event("payment.success", zeltapaytest.Delete("transaction.externalPaymentId")),
			[]string{"paymentLinkId", "transaction", "transaction.amount"},
		},
		{"nested: two ids, of which one is enough", zeltapaytest.Nested.Event("payment.success"), []string{"paymentLink", "paymentLink.amount"}},
		{
			"nested, named by its link alone",
			zeltapaytest.Nested.Event("payment.success", zeltapaytest.Delete("transaction.id")),
			[]string{"paymentLink", "paymentLink.id", "paymentLink.amount"},
		},
		{"a ping is about nothing", zeltapaytest.Flat.Event("webhook.ping"), nil},
	} {
		var body map[string]any
		if err := json.Unmarshal(c.body, &body); err != nil {
			t.Fatal(err)
		}
		for _, path := range fields("", body) {
			if path == "type" || strings.Contains(path, "etadata.") {
				continue // an event of no type, and the merchant's own data
			}
			for _, null := range []bool{true, false} {
				changed := without(t, body, path, null)
				handled := 0
				d := zeltapay.NewDispatcher()
				d.OnPaymentSuccess(func(context.Context, pgx.Tx, *zeltapay.PaymentEvent) error { handled++; return nil })
				d.OnWebhookPing(func(context.Context, pgx.Tx, *zeltapay.PingEvent) error { handled++; return nil })
				err := d.Dispatch(t.Context(), nil, zeltapay.Identify(changed))
				if parks := slices.Contains(c.parks, path); parks != (err != nil) || parks != (handled == 0) || parks != (len(d.Drift()) > 0) {
					t.Errorf("%s: %s, null=%t: handled %d times, %v, with the drift %v; want that it parks: %t", c.why, path, null, handled, err, d.Drift(), parks)
				}
			}
		}
	}
}

// fields are the paths of all fields in an object.
func fields(path string, object map[string]any) (out []string) {
	for name, value := range object {
		at := strings.TrimPrefix(path+"."+name, ".")
		out = append(out, at)
		if inner, ok := value.(map[string]any); ok {
			out = append(out, fields(at, inner)...)
		}
	}
	return out
}

// without is a body whose field at a path is null, or absent.
func without(t *testing.T, body map[string]any, path string, null bool) []byte {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	var changed map[string]any
	if err := json.Unmarshal(text, &changed); err != nil {
		t.Fatal(err)
	}
	at, names := changed, strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		at = at[name].(map[string]any)
	}
	delete(at, names[len(names)-1])
	if null {
		at[names[len(names)-1]] = nil
	}
	if text, err = json.Marshal(changed); err != nil {
		t.Fatal(err)
	}
	return text
}
