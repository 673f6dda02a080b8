package zeltapay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// holder is a struct of an application's.
type holder struct{ Held any }

func TestNothingThatIsPrintedShowsASecret(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-of-32-characters-abcdefgh"
	d := zeltapay.NewDispatcher(secret, secret)
	values := map[string]any{"a dispatcher": d, "a verifier": d.Verifier, "a verifier's pointer": &d.Verifier}
	// What go vet would find: a copy of the struct itself.
	dispatcher := reflect.ValueOf(d).Elem()
	wantNoSecret(t, "a dispatcher's copy", secret, fmt.Sprintf("%v %+v %#v", dispatcher, dispatcher, dispatcher))
	for name, v := range values {
		for _, printed := range []any{v, &v, holder{v}, []any{v}, map[string]any{"v": v}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%o", "%e", "%T"} {
				wantNoSecret(t, name+" with "+verb, secret, fmt.Sprintf(verb, printed))
			}
			if reflect.TypeOf(v).Kind() == reflect.Pointer { // else no verb for it, which go vet says, and fmt asks no Format
				wantNoSecret(t, name+" with %p", secret, fmt.Sprintf("%p", v))
			}
			wantNoSecret(t, name+" by Sprint", secret, fmt.Sprint(printed))
			text, _ := json.Marshal(printed) // an error shows nothing, too
			wantNoSecret(t, name+" as JSON", secret, string(text))
			var logged bytes.Buffer
			for _, handler := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
				slog.New(handler).Info("x", "v", printed, slog.Group("g", "v", printed))
			}
			wantNoSecret(t, name+" in a log", secret, logged.String())
		}
		text, err := json.Marshal(v)
		if err != nil || !strings.Contains(string(text), "redacted") || !strings.Contains(fmt.Sprint(v), "redacted") {
			t.Errorf("%s is printed as %v, and as JSON as %s, %v", name, v, text, err)
		}
	}
}

func wantNoSecret(t *testing.T, how, secret, printed string) {
	t.Helper()
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprint([]byte(secret))} {
		if strings.Contains(printed, form) {
			t.Errorf("%s it shows: %s", how, printed)
		}
	}
}

func TestNoEventThatIsPrintedShowsAPerson(t *testing.T) {
	t.Parallel()
	const person = "Maria-Aparecida"
	for _, layout := range []zeltapaytest.Layout{zeltapaytest.Flat, zeltapaytest.Nested} {
		changes := []zeltapaytest.Change{zeltapaytest.Set("customer.email", person), zeltapaytest.Set("paymentLink.metadata", map[string]any{"cpf": person, "seats": 2, "note": nil})}
		if layout == zeltapaytest.Flat {
			changes = []zeltapaytest.Change{zeltapaytest.Set("customer.customerEmail", person), zeltapaytest.Set("customer.customerName", person), zeltapaytest.Set("metadata", map[string]any{"cpf": person, "seats": 2, "note": nil})}
		}
		e, err := zeltapay.Parse(layout.Event("payment.success", changes...))
		if err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
			slog.New(handler).Info("x", "e", e, "customer", e.(*zeltapay.PaymentEvent).Customer)
		}
		said := logged.String() + fmt.Sprintf("%v %+v %#v %s", e, e, e, []any{e, e.(*zeltapay.PaymentEvent).Customer})
		if strings.Contains(said, person) || !strings.Contains(said, "redacted") || !strings.Contains(said, "pl_770391321967") || strings.Contains(said, "cpf") || strings.Count(said, "[3 fields]") < 6 {
			t.Errorf("%s: it is printed as %s", layout, said)
		}
		if body, err := json.Marshal(e); err != nil || !strings.Contains(string(body), person) {
			t.Errorf("%s: it is written as %s, %v", layout, body, err)
		}
	}
}

func TestMetadataShowsTheNumberOfItsFieldsOnly(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]zeltapay.Metadata{
		"[0 fields]": nil,
		"[1 fields]": {"cpf": json.RawMessage(`null`)},
		"[2 fields]": {"cpf": json.RawMessage(`"11144477735"`), "seats": nil},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if got := fmt.Sprintf(verb, m); got != want {
				t.Errorf("with %s it is %s, want %s", verb, got, want)
			}
		}
		var logged bytes.Buffer
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "m", m)
		if !strings.Contains(logged.String(), want) || strings.Contains(logged.String(), "cpf") {
			t.Errorf("it is logged as %s, want %s", &logged, want)
		}
	}
}
