package webhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/webhook"
)

func TestNoPlanAndNoWatchThatIsPrintedShowsTheToken(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	p.fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: shopURL, Email: p.want.Email, Events: []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentRefunded}}) // it gets the token by the plan
	plan, watch := p.plan(t), webhook.NewWatch(p.client, p.want, p.events)
	copied := reflect.ValueOf(watch).Elem() // go vet finds a copy of the struct itself
	wantNoSecret(t, "a watch's copy", webhookToken, fmt.Sprintf("%v %+v %#v", copied, copied, copied))
	for _, v := range []any{plan, *plan, watch} {
		for _, printed := range []any{v, struct{ Held any }{v}, []any{v}} {
			wantNoSecret(t, fmt.Sprintf("a %T", v), webhookToken, fmt.Sprintf("%v %+v %#v %s", printed, printed, printed, printed))
		}
		text, _ := json.Marshal(v) // an error shows nothing, too
		wantNoSecret(t, fmt.Sprintf("a %T as JSON", v), webhookToken, string(text))
		var logged bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
			slog.New(handler).Info("x", "v", v)
		}
		wantNoSecret(t, fmt.Sprintf("a %T in a log", v), webhookToken, logged.String())
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
