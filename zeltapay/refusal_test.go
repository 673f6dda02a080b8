package zeltapay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
	"github.com/paghooks/paghooks/zeltapay"
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
