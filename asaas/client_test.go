package asaas_test

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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
)

const (
	apiKey    = "$aact_prod_000Abc::secret==" // nobody's
	webhookID = "3b1f4cc2-6d6f-4f6a-9f0e-2c8f0f1b7a10"
)

// exchange is a request as it must be sent, and its answer.
type exchange struct {
	method, uri, body string
	status            int
	answer            string
}

// clientOf makes a client of a server that takes these requests, in this order
// and no other, and answers them.
func clientOf(t *testing.T, exchanges ...exchange) *asaas.Client {
	t.Helper()
	requests := make(chan exchange, len(exchanges))
	for _, e := range exchanges {
		requests <- e
	}
	client := clientWith(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case e := <-requests:
			compareRequest(t, e, r)
			w.WriteHeader(e.status)
			_, _ = io.WriteString(w, e.answer)
		default:
			t.Errorf("one request too many: %s %s", r.Method, r.RequestURI)
		}
	})
	t.Cleanup(func() {
		if len(requests) > 0 {
			t.Errorf("%d requests were not sent", len(requests))
		}
	})
	return client
}

func compareRequest(t *testing.T, want exchange, r *http.Request) {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	got := []string{
		r.Method, r.RequestURI, string(body), fmt.Sprint(err),
		r.Header.Get("access_token"), r.Header.Get("User-Agent"), r.Header.Get("Accept"), r.Header.Get("Content-Type"),
	}
	contentType := ""
	if want.body != "" {
		contentType = "application/json"
	}
	if diff := cmp.Diff([]string{want.method, want.uri, want.body, "<nil>", apiKey, "shop/1.0", "application/json", contentType}, got); diff != "" {
		t.Errorf("another request (-want +got):\n%s", diff)
	}
}

// clientWith makes a client of a server.
func clientWith(t *testing.T, h http.HandlerFunc) *asaas.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client := newClient(t)
	client.BaseURL = server.URL + "/v3/"
	return client
}

func newClient(t *testing.T) *asaas.Client {
	t.Helper()
	client, err := asaas.NewClient(asaas.Production, apiKey)
	if err != nil {
		t.Fatal(err)
	}
	client.UserAgent = "shop/1.0"
	return client
}

// everything is a webhook as Asaas answers it, and more than is known of it.
const everything = `{"object":"webhook","id":"` + webhookID + `","name":"Loja","url":"https://shop.example/asaas?a=1&b=2","email":"ops@shop.example",
	"enabled":true,"interrupted":false,"apiVersion":3,"hasAuthToken":true,"sendType":"BY_MOON","penalizedRequestsCount":0.0,
	"events":["PAYMENT_RECEIVED","PAYMENT_TELEPORTED"],"newField":{"a":[1]}}`

func wantEverything() *asaas.Webhook {
	return &asaas.Webhook{
		ID: webhookID, Name: value.Of("Loja"), URL: value.Of("https://shop.example/asaas?a=1&b=2"), Email: value.Of("ops@shop.example"),
		Enabled: value.Of(true), Interrupted: value.Of(false), APIVersion: value.Of(asaas.Int(3)), HasAuthToken: value.Of(true),
		SendType: value.Of(asaas.WebhookSendType("BY_MOON")), PenalizedRequestsCount: value.Of(asaas.Int(0)),
		Events: value.Of([]asaas.EventType{asaas.EventPaymentReceived, "PAYMENT_TELEPORTED"}),
	}
}

func TestEachCallSendsExactlyThis(t *testing.T) {
	t.Parallel()
	events := []asaas.EventType{asaas.EventPaymentReceived, "PAYMENT_TELEPORTED"}
	for _, tt := range []struct {
		reason string
		want   exchange
		call   func(context.Context, *asaas.Client) (*asaas.Webhook, error)
	}{
		{
			"what newer versions of Asaas answer is no error",
			exchange{method: "GET", uri: "/v3/webhooks/" + webhookID},
			func(ctx context.Context, c *asaas.Client) (*asaas.Webhook, error) { return c.Webhook(ctx, webhookID) },
		},
		{
			"an id stays inside of its place in the path",
			exchange{method: "GET", uri: "/v3/webhooks/..%2F..%2Fpayments%3Fa=%25"},
			func(ctx context.Context, c *asaas.Client) (*asaas.Webhook, error) {
				return c.Webhook(ctx, "../../payments?a=%")
			},
		},
		{
			"what Asaas would choose by itself is sent",
			exchange{method: "POST", uri: "/v3/webhooks", body: `{"name":"Loja","url":"https://shop.example","email":"ops@shop.example",` +
				`"enabled":true,"interrupted":false,"apiVersion":3,"sendType":"SEQUENTIALLY","events":["PAYMENT_RECEIVED","PAYMENT_TELEPORTED"]}`},
			func(ctx context.Context, c *asaas.Client) (*asaas.Webhook, error) {
				return c.CreateWebhook(ctx, asaas.WebhookCreate{Name: "Loja", URL: "https://shop.example", Email: "ops@shop.example", Events: events})
			},
		},
		{
			"what is set to false, 0 or nothing is sent so",
			exchange{method: "POST", uri: "/v3/webhooks", body: `{"name":"","url":"","email":"",` +
				`"enabled":false,"interrupted":true,"apiVersion":0,"authToken":"","sendType":"NON_SEQUENTIALLY","events":["PAYMENT_RECEIVED","PAYMENT_TELEPORTED"]}`},
			func(ctx context.Context, c *asaas.Client) (*asaas.Webhook, error) {
				return c.CreateWebhook(ctx, asaas.WebhookCreate{
					Enabled: value.Of(false), Interrupted: value.Of(true), APIVersion: value.Of(asaas.Int(0)), AuthToken: value.Of(""),
					SendType: asaas.WebhookSendTypeNonSequentially, Events: events,
				})
			},
		},
		{
			"what an update does not set is not sent",
			exchange{method: "PUT", uri: "/v3/webhooks/" + webhookID, body: `{"enabled":false}`},
			func(ctx context.Context, c *asaas.Client) (*asaas.Webhook, error) {
				return c.UpdateWebhook(ctx, webhookID, asaas.WebhookUpdate{Enabled: value.Of(false)})
			},
		},
		{
			"an update may set everything",
			exchange{method: "PUT", uri: "/v3/webhooks/" + webhookID, body: `{"name":"","url":"https://new.example","sendType":"SEQUENTIALLY",` +
				`"enabled":true,"interrupted":true,"authToken":"a token","events":["PAYMENT_RECEIVED","PAYMENT_TELEPORTED"]}`},
			func(ctx context.Context, c *asaas.Client) (*asaas.Webhook, error) {
				return c.UpdateWebhook(ctx, webhookID, asaas.WebhookUpdate{
					Name: value.Of(""), URL: value.Of("https://new.example"), SendType: value.Of(asaas.WebhookSendTypeSequentially),
					Enabled: value.Of(true), Interrupted: value.Of(true), AuthToken: value.Of("a token"), Events: value.Of(events),
				})
			},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			tt.want.status, tt.want.answer = 200, everything
			got, err := tt.call(t.Context(), clientOf(t, tt.want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wantEverything(), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestQueueCallsSendExactlyThis(t *testing.T) {
	t.Parallel()
	const path = "/v3/webhooks/" + webhookID
	client := clientOf(t,
		exchange{method: "POST", uri: path + "/removeBackoff", body: `{}`, status: 204},
		exchange{method: "PUT", uri: path, body: `{"interrupted":false}`, status: 200, answer: everything},
		exchange{method: "DELETE", uri: path, status: 200, answer: `{"deleted":true,"id":"` + webhookID + `"}`},
	)
	for _, call := range []func(context.Context, string) error{client.RemoveBackoff, client.Resume, client.DeleteWebhook} {
		if err := call(t.Context(), webhookID); err != nil {
			t.Error(err)
		}
	}
}

func page(more bool, ids ...string) string {
	data := []map[string]any{}
	for _, id := range ids {
		data = append(data, map[string]any{"id": id})
	}
	answer, _ := json.Marshal(map[string]any{"object": "list", "hasMore": more, "totalCount": 3, "limit": 100, "offset": 0, "data": data})
	return string(answer)
}

func listed(ctx context.Context, c *asaas.Client) (ids []string, err error) {
	for w, err := range c.Webhooks(ctx) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, w.ID)
	}
	return ids, nil
}

func TestAListHasAllPages(t *testing.T) {
	t.Parallel()
	const first, second, third = "/v3/webhooks?limit=100&offset=0", "/v3/webhooks?limit=100&offset=2", "/v3/webhooks?limit=100&offset=4"
	for _, tt := range []struct {
		reason    string
		exchanges []exchange
		want      []string
		failure   string
	}{
		{"no webhooks", []exchange{{uri: first, answer: page(false)}}, nil, ""},
		{"one page", []exchange{{uri: first, answer: page(false, "a", "b")}}, []string{"a", "b"}, ""},
		{"a webhook that moved to the next page comes once", []exchange{
			{uri: first, answer: page(true, "a", "b")}, {uri: second, answer: page(true, "b", "c")}, {uri: third, answer: page(false, "d")},
		}, []string{"a", "b", "c", "d"}, ""},
		{"pages without an end", []exchange{
			{uri: first, answer: page(true, "a", "b")}, {uri: second, answer: page(true, "a", "b")},
		}, []string{"a", "b"}, "the list has no end"},
		{"an empty page that promises more", []exchange{{uri: first, answer: page(true)}}, nil, "the list has no end"},
		{"the second page fails", []exchange{
			{uri: first, answer: page(true, "a", "b")}, {uri: second, status: 404},
		}, []string{"a", "b"}, "asaas: Webhooks: it was answered with 404"},
		{"other JSON is no empty list", []exchange{{uri: first, answer: `{}`}}, nil, "it is no list"},
		{"a webhook without an id", []exchange{{uri: first, answer: page(false, "a", "")}}, nil, "it is no webhook"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			for i := range tt.exchanges {
				e := &tt.exchanges[i]
				e.method, e.status = "GET", max(e.status, 200)
			}
			got, err := listed(t.Context(), clientOf(t, tt.exchanges...))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err != nil) != (tt.failure != "") || err != nil && !strings.Contains(err.Error(), tt.failure) {
				t.Errorf("got the error %v, want %q", err, tt.failure)
			}
		})
	}
}

func TestAListThatIsLeftAsksForNoMore(t *testing.T) {
	t.Parallel()
	client := clientOf(t, exchange{method: "GET", uri: "/v3/webhooks?limit=100&offset=0", status: 200, answer: page(true, "a", "b")})
	for range client.Webhooks(t.Context()) {
		break
	}
}

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
			_, err := c.UpdateWebhook(ctx, webhookID, asaas.WebhookUpdate{Events: value.Of([]asaas.EventType(nil))})
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
