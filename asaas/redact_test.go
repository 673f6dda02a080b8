package asaas_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/withdrawal"
	"github.com/paghooks/paghooks/idem/value"
)

// holder is a struct of an application's.
type holder struct{ Held any }

func TestAValidatorThatIsPrintedShowsNoToken(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-of-32-characters-abcdefgh"
	v := withdrawal.NewValidator(secret, func(context.Context, *asaas.Withdrawal) (withdrawal.Decision, error) {
		return withdrawal.Approve(), nil
	})
	values := map[string]any{"a validator": v, "a validator's copy": *v}
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

func TestNoWebhookThatIsPrintedShowsItsToken(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-of-32-characters-abcdefgh"
	made := asaas.Webhook{ID: "a-webhook", AuthToken: value.Of(secret)}
	asked := asaas.WebhookCreate{Name: "a-webhook", AuthToken: value.Of(secret)}
	change := asaas.WebhookUpdate{Name: value.Of("a-webhook"), AuthToken: value.Of(secret)}
	for _, w := range []any{made, &made, asked, &asked, change, &change} {
		for _, printed := range []any{w, holder{w}, []any{w}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
				wantNoSecret(t, fmt.Sprintf("a %T with %s", w, verb), secret, fmt.Sprintf(verb, printed))
			}
		}
		var logged bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
			slog.New(handler).Info("x", "v", w)
		}
		wantNoSecret(t, fmt.Sprintf("a %T in a log", w), secret, logged.String())
		if n := strings.Count(fmt.Sprint(w)+logged.String(), "a-webhook"); n != 3 {
			t.Errorf("a %T is printed as %v and logged as %s", w, w, &logged)
		}
		if sent, err := json.Marshal(w); err != nil || !strings.Contains(string(sent), secret) {
			t.Errorf("a %T is sent without its token: %s, %v", w, sent, err)
		}
	}
	if made.AuthToken != value.Of(secret) {
		t.Error("printing has changed it")
	}
	if said := fmt.Sprint(asaas.Webhook{}, (*asaas.Webhook)(nil)); strings.Contains(said, "redacted") || strings.Contains(said, "PANIC") {
		t.Errorf("without a token it prints %s", said)
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
