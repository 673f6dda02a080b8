package asaas_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/optional"
)

func TestAKeyOfTheWrongKindIsRefusedWithoutBeingShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason      string
		environment asaas.Environment
		key, want   string
	}{
		{"no variable", asaas.Production, "", "empty"},
		{"a line break of a file", asaas.Production, "$aact_prod_SECRET\n", "line break"},
		{"a space", asaas.Production, " $aact_prod_SECRET", "space"},
		{"a letter that no key has", asaas.Production, "$aact_prod_SECRÉT", "another character"},
		{"sandbox's in production", asaas.Production, "$aact_hmlg_SECRET", "it starts with $aact_hmlg_"},
		{"production's in the sandbox", asaas.Sandbox, "$aact_prod_SECRET", "it starts with $aact_prod_"},
		{"from before there were prefixes", asaas.Production, "$aact_YSECRET", "make a new one"},
		{"the shell took the $ and what follows", asaas.Production, "::SECRET==", "single quotes"},
		{"no more than the prefix", asaas.Sandbox, "$aact_hmlg_", "copy it whole"},
		{"no such environment", "staging", "$aact_prod_SECRET", "asaas.Sandbox"},
	} {
		_, err := asaas.NewClient(tt.environment, tt.key)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "SECR") || !strings.HasPrefix(err.Error(), "asaas: ") {
			t.Errorf("%s: got the error %v, want %q", tt.reason, err, tt.want)
		}
	}
	if _, err := asaas.NewClient(asaas.Sandbox, "$aact_hmlg_SECRET"); err != nil {
		t.Error(err)
	}
}

func TestAClientNeverPrintsItsKey(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("text", "client", c, "copy", *c)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("json", "client", c, "copy", *c)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&log, format+format+format, c, *c, struct{ C *asaas.Client }{c})
	}
	err := json.NewEncoder(&log).Encode(*c)
	said := log.String()
	if err != nil || strings.Contains(said, "secret") || strings.Contains(said, fmt.Sprintf("%x", "secret")) {
		t.Errorf("the key is there, or %v:\n%s", err, said)
	}
	if got := c.String(); got != "asaas.Client(production)" {
		t.Errorf("got %s", got)
	}
}

func TestTheDefaultUserAgentNamesThisModule(t *testing.T) {
	t.Parallel()
	c, err := asaas.NewClient(asaas.Sandbox, "$aact_hmlg_x")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(c.UserAgent, "paghooks/") || !strings.HasSuffix(c.UserAgent, " (+https://github.com/paghooks/paghooks)") {
		t.Errorf("got %s", c.UserAgent)
	}
}

func TestWhatMustNotBeSentIsNot(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	get := func(ctx context.Context, c *asaas.Client) error { _, err := c.Webhook(ctx, webhookID); return err }
	for _, tt := range []struct {
		reason  string
		prepare func(*asaas.Client)
		call    func(context.Context, *asaas.Client) error
		want    string
	}{
		{"no user agent", func(c *asaas.Client) { c.UserAgent = " " }, get, "UserAgent is empty"},
		{"a user agent with another header", func(c *asaas.Client) { c.UserAgent = "a\r\nb: c" }, get, "UserAgent has a line break"},
		{"no time", func(c *asaas.Client) { c.Timeout = 0 }, get, "Timeout is not positive"},
		{"no address", func(c *asaas.Client) { c.BaseURL = "" }, get, "the API's address is none"},
		{"no host", func(c *asaas.Client) { c.BaseURL = "https:///v3" }, get, "the API's address is none"},
		{"a password", func(c *asaas.Client) { c.BaseURL = "https://a:b@api.example/v3" }, get, "the API's address is none"},
		{"a query", func(c *asaas.Client) { c.BaseURL += "?a" }, get, "the API's address is none"},
		{"control characters", func(c *asaas.Client) { c.BaseURL += "\x00" }, get, "the API's address is none"},
		{"a file", func(c *asaas.Client) { c.BaseURL = "file://localhost/v3" }, get, "the API's address is none"},
		{"the key unencrypted", func(c *asaas.Client) { c.BaseURL = "http://api.asaas.com/v3" }, get, "write https"},
		{"not made by NewClient", func(c *asaas.Client) { *c = asaas.Client{} }, get, "NewClient"},
		{"not made by NewClient, and no queue", func(c *asaas.Client) { *c = asaas.Client{} }, func(ctx context.Context, c *asaas.Client) error {
			return c.RemoveBackoff(ctx, webhookID)
		}, "NewClient"},
		{"the context is over", func(*asaas.Client) {}, func(_ context.Context, c *asaas.Client) error { return get(over, c) }, "context canceled"},
		{"no id", func(*asaas.Client) {}, func(ctx context.Context, c *asaas.Client) error { _, err := c.Webhook(ctx, ""); return err }, "id is empty"},
		{"no id to remove the backoff of", func(*asaas.Client) {}, func(ctx context.Context, c *asaas.Client) error { return c.RemoveBackoff(ctx, "") }, "id is empty"},
		{"no id to resume", func(*asaas.Client) {}, func(ctx context.Context, c *asaas.Client) error { return c.Resume(ctx, "") }, "id is empty"},
		{"an id that a proxy takes for the folder above", func(*asaas.Client) {}, func(ctx context.Context, c *asaas.Client) error { return c.DeleteWebhook(ctx, "..") }, "id is empty"},
		{"no events for a new webhook", func(*asaas.Client) {}, func(ctx context.Context, c *asaas.Client) error {
			_, err := c.CreateWebhook(ctx, asaas.WebhookCreate{Name: "a"})
			return err
		}, "list of Events is empty"},
		{"no events left", func(*asaas.Client) {}, func(ctx context.Context, c *asaas.Client) error {
			_, err := c.UpdateWebhook(ctx, webhookID, asaas.WebhookUpdate{Events: optional.Of([]asaas.EventType(nil))})
			return err
		}, "list of Events is empty"},
		{"no change", func(*asaas.Client) {}, func(ctx context.Context, c *asaas.Client) error {
			_, err := c.UpdateWebhook(ctx, webhookID, asaas.WebhookUpdate{})
			return err
		}, "changes nothing"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			client := clientOf(t) // takes no request
			tt.prepare(client)
			err := tt.call(t.Context(), client)
			e, ok := errors.AsType[*asaas.APIError](err)
			if !ok || e.Outcome != asaas.CallNotDelivered || e.Status != 0 || !strings.Contains(err.Error(), "nothing was sent: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got the error %v, want %q", err, tt.want)
			}
		})
	}
}
