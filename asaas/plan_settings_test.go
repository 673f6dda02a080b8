package asaas_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas"
)

func TestSettingsThatNoWebhookCanHaveAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		change func(*planned)
		says   string
	}{
		{"no name", func(p *planned) { p.want.Name = " " }, "asaas: PlanWebhook: the settings have no Name"},
		{"no URL", func(p *planned) { p.want.URL = "" }, "asaas: PlanWebhook: the settings have no URL"},
		{"a URL of nothing", func(p *planned) { p.want.URL = "shop.example/asaas" }, "asaas: PlanWebhook: the settings have no URL"},
		{"no order", func(p *planned) { p.want.SendType = "SOMEHOW" }, `asaas: PlanWebhook: there is no SendType "SOMEHOW"`},
		{"no handler", func(p *planned) { p.events = asaas.NewDispatcher() }, "asaas: PlanWebhook: the application handles no event type"},
		{"no dispatcher", func(p *planned) { p.events = nil }, "asaas: PlanWebhook: the application handles no event type"},
		{"a key of nobody", func(p *planned) { p.fake.APIKey = "$aact_hmlg_another" }, "asaas: PlanWebhook: it was answered with 401"},
	} {
		p := newPlanned(t)
		tt.change(p)
		if plan, err := asaas.PlanWebhook(t.Context(), p.client, p.want, p.events); err == nil || !strings.HasPrefix(err.Error(), tt.says) {
			t.Errorf("%s: %v, %v", tt.reason, plan, err)
		}
	}
	p := newPlanned(t)
	p.want.Email = ""
	if _, err := p.plan(t).Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "a new webhook needs an Email") {
		t.Errorf("without an e-mail: %v", err)
	}
}

func TestSettingsShowNoToken(t *testing.T) {
	t.Parallel()
	s := asaas.WebhookSettings{Name: "shop", URL: shopURL + "?key=hidden", Token: webhookToken}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		want := `{Name:"shop" URL:"` + shopURL + `" SendType:SEQUENTIALLY Types:0}`
		if got := fmt.Sprintf(format, s); got != want {
			t.Errorf("%s: %s", format, got)
		}
	}
	if s.LogValue().String() != s.String() {
		t.Error("slog shows more")
	}
}
