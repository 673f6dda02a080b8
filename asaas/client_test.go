package asaas_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/optional"
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
		ID: webhookID, Name: optional.Of("Loja"), URL: optional.Of("https://shop.example/asaas?a=1&b=2"), Email: optional.Of("ops@shop.example"),
		Enabled: optional.Of(true), Interrupted: optional.Of(false), APIVersion: optional.Of(asaas.Int(3)), HasAuthToken: optional.Of(true),
		SendType: optional.Of(asaas.WebhookSendType("BY_MOON")), PenalizedRequestsCount: optional.Of(asaas.Int(0)),
		Events: optional.Of([]asaas.EventType{asaas.EventPaymentReceived, "PAYMENT_TELEPORTED"}),
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
					Enabled: optional.Of(false), Interrupted: optional.Of(true), APIVersion: optional.Of(asaas.Int(0)), AuthToken: optional.Of(""),
					SendType: asaas.WebhookSendTypeNonSequentially, Events: events,
				})
			},
		},
		{
			"what an update does not set is not sent",
			exchange{method: "PUT", uri: "/v3/webhooks/" + webhookID, body: `{"enabled":false}`},
			func(ctx context.Context, c *asaas.Client) (*asaas.Webhook, error) {
				return c.UpdateWebhook(ctx, webhookID, asaas.WebhookUpdate{Enabled: optional.Of(false)})
			},
		},
		{
			"an update may set everything",
			exchange{method: "PUT", uri: "/v3/webhooks/" + webhookID, body: `{"name":"","url":"https://new.example","sendType":"SEQUENTIALLY",` +
				`"enabled":true,"interrupted":true,"authToken":"a token","events":["PAYMENT_RECEIVED","PAYMENT_TELEPORTED"]}`},
			func(ctx context.Context, c *asaas.Client) (*asaas.Webhook, error) {
				return c.UpdateWebhook(ctx, webhookID, asaas.WebhookUpdate{
					Name: optional.Of(""), URL: optional.Of("https://new.example"), SendType: optional.Of(asaas.WebhookSendTypeSequentially),
					Enabled: optional.Of(true), Interrupted: optional.Of(true), AuthToken: optional.Of("a token"), Events: optional.Of(events),
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
