package zeltapay_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/zeltapay"
)

func TestACanaryIsTakenForGenuineByAReceiverOfZeltaPay(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		reason string
		set    func(*zeltapay.Verifier)
		secret string
		says   string // "" is all is well
	}{
		{"its secret is right", func(*zeltapay.Verifier) {}, "secret", ""},
		{"one format is pinned", func(v *zeltapay.Verifier) { v.SignedFormat = zeltapay.FormatPrefixed }, "secret", ""},
		{"the other format is pinned", func(v *zeltapay.Verifier) { v.SignedFormat = zeltapay.FormatPlain }, "secret", ""},
		{"headers must agree", func(v *zeltapay.Verifier) { v.StrictHeaders = true }, "secret", ""},
		{"its secret is wrong", func(*zeltapay.Verifier) {}, "guess", "(wrong_signature)"},
		{"it has none", func(*zeltapay.Verifier) {}, "", "(wrong_signature)"},
		{"the application has none", func(v *zeltapay.Verifier) { v.Secrets = nil }, "secret", "has no token or secret to verify with"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			events := zeltapay.NewDispatcher("secret")
			tt.set(&events.Verifier)
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
