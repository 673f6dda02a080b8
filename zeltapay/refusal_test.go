package zeltapay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

func TestRefusalsNeverShowSecretOrSignature(t *testing.T) {
	t.Parallel()
	const secret = "whsec_very_secret"
	good := make(http.Header)
	zeltapay.Sign(good, []byte(vectorPing), secret, time.Now())
	sum := good.Get("Zeltapay-Signature")[len("t=1640995200, v1="):]
	for name, values := range map[string][]string{
		"Zeltapay-Signature":  {"", sum, "t=1, v1=" + sum, "t=x, v1=" + sum, "v1=" + sum, sum + sum},
		"Zeltapay-Timestamp":  {"1", sum},
		"Zeltapay-Event-Id":   {sum, secret},
		"Zeltapay-Event-Type": {sum, secret},
	} {
		for _, value := range values {
			h := good.Clone()
			h.Set(name, value)
			err := verifier{Secrets: []string{secret}, StrictHeaders: true}.Verify(h, []byte(vectorPing))
			if err == nil {
				t.Fatalf("%s: %s verifies", name, value)
			}
			if strings.Contains(err.Error(), sum) || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the refusal shows what it must not: %v", name, err)
			}
		}
	}
}

// unread is a body that must not be read.
type unread struct {
	t   *testing.T
	why string
}

func (u unread) Read([]byte) (int, error) {
	u.t.Errorf("%s: the body is read", u.why)
	return 0, io.EOF
}

func (unread) Close() error { return nil }

// What the headers alone show is not genuine costs no memory for its body.
func TestTheBodyOfAStrangerIsNotRead(t *testing.T) {
	t.Parallel()
	signature := func(text string) http.Header { return http.Header{"Zeltapay-Signature": {text}} }
	digits := strings.Repeat("0", 64)
	now := time.Now()
	for _, c := range []struct {
		why    string
		header http.Header
		secret string
	}{
		{"no signature", nil, "secret"},
		{"none of the known forms", signature("guess"), "secret"},
		{"no secret is configured", signature(fmt.Sprintf("t=%d, v1=%s", now.Unix(), digits)), ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", unread{t, c.why})
		r.Header = c.header
		var refusal *idem.Refusal
		if _, err := zeltapay.NewDispatcher(c.secret).Open(r); !errors.As(err, &refusal) {
			t.Errorf("%s: Open = %v, want a refusal", c.why, err)
		}
	}
}

func TestNothingThatIsPrintedShowsASecret(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-of-32-characters-abcdefgh"
	d := zeltapay.NewDispatcher(secret)
	var said bytes.Buffer
	for _, v := range []any{d, &d.Dispatcher, struct{ Held any }{d}, []any{d}, reflect.ValueOf(d).Elem()} { // the last is a copy
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&said, verb+"\n", v)
		}
		text, _ := json.Marshal(v) // an error shows nothing, too
		said.Write(text)
		for _, handler := range []slog.Handler{slog.NewTextHandler(&said, nil), slog.NewJSONHandler(&said, nil)} {
			slog.New(handler).Info("x", "v", v)
		}
	}
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), strings.Trim(fmt.Sprint([]byte(secret)), "[]")} {
		if strings.Contains(said.String(), form) {
			t.Errorf("%q is in what is printed:\n%s", form, said.String())
		}
	}
	if !strings.Contains(fmt.Sprint(d), "redacted") {
		t.Errorf("a dispatcher is printed as %v", d)
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

func TestACanaryIsTakenForGenuineByAReceiverOfZeltaPay(t *testing.T) {
	t.Parallel()
	pool := testkit.Open(t)
	for _, tt := range []struct {
		reason string
		set    func(*zeltapay.Dispatcher)
		secret string
		says   string // "" is all is well
	}{
		{"its secret is right", func(*zeltapay.Dispatcher) {}, "secret", ""},
		{"one format is pinned", func(d *zeltapay.Dispatcher) { d.Scheme = pinned(zeltapay.FormatPrefixed) }, "secret", ""},
		{"the other format is pinned", func(d *zeltapay.Dispatcher) { d.Scheme = pinned(zeltapay.FormatPlain) }, "secret", ""},
		{"headers must agree", func(d *zeltapay.Dispatcher) { d.StrictHeaders = true }, "secret", ""},
		{"its secret is wrong", func(*zeltapay.Dispatcher) {}, "guess", "(wrong_signature)"},
		{"it has none", func(*zeltapay.Dispatcher) {}, "", "(wrong_signature)"},
		{"the application has none", func(d *zeltapay.Dispatcher) { *d = *zeltapay.NewDispatcher() }, "secret", "has no token or secret to verify with"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			events := zeltapay.NewDispatcher("secret")
			tt.set(events)
			events.OnUnknown(func(context.Context, pgx.Tx, *zeltapay.UnknownEvent) error {
				t.Error("a handler of the application ran")
				return nil
			})
			inbox := idem.NewInbox(pool, events)
			inbox.Logger = slog.New(slog.DiscardHandler)
			server := httptest.NewServer(inbox)
			t.Cleanup(server.Close)
			canary := zeltapay.NewCanary(server.URL, tt.secret)
			canary.Logger = nil
			err := canary.Send(t.Context())
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Send = %v, want %q", err, tt.says)
			}
			if stats, err := inbox.Stats(t.Context()); stats != (idem.Stats{}) || err != nil {
				t.Errorf("something is stored: %+v, %v", stats, err)
			}
		})
	}
}
