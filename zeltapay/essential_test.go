package zeltapay_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

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
