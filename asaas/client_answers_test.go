package asaas_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
)

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// raw answers with bytes that need not be HTTP, and ends the connection.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
}

func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

func refusal(code, description string) string {
	return `{"errors":[{"code":"` + code + `","description":"` + description + `"}]}`
}

// A create is the call that does the most harm when it is repeated by mistake.
func create(ctx context.Context, c *asaas.Client) error {
	_, err := c.CreateWebhook(ctx, asaas.WebhookCreate{
		Name: "Loja", AuthToken: value.Of("the-token-of-the-webhook"), Events: []asaas.EventType{asaas.EventPaymentReceived},
	})
	return err
}

func read(ctx context.Context, c *asaas.Client) error {
	_, err := c.Webhook(ctx, webhookID)
	return err
}

func removeBackoff(ctx context.Context, c *asaas.Client) error {
	return c.RemoveBackoff(ctx, webhookID)
}

func TestEveryBadAnswerTellsWhatWasDoneAndWhatToDo(t *testing.T) {
	t.Parallel()
	remove := func(ctx context.Context, c *asaas.Client) error { return c.DeleteWebhook(ctx, webhookID) }
	resume := func(ctx context.Context, c *asaas.Client) error { return c.Resume(ctx, webhookID) }
	for _, tt := range []struct {
		reason  string
		handler http.HandlerFunc
		call    func(context.Context, *asaas.Client) error
		outcome asaas.CallOutcome
		status  int
		want    string
	}{
		{"JSON that is cut off", answer(200, `{"id":"a","authToken":"the-token-of`), create, asaas.CallUnknown, 200, "it may have been done: look at the webhooks before you do it again: the answer is not the JSON"},
		{"JSON that is cut off, of a call that only reads", answer(200, `{"id":`), read, asaas.CallUnknown, 200, "try it again: the answer is not the JSON"},
		{"a field of another type", answer(200, `{"id":"a","enabled":"yes"}`), read, asaas.CallUnknown, 200, "the answer is not the JSON"},
		{"nothing", answer(200, ""), read, asaas.CallUnknown, 200, "the answer is empty"},
		{"another object", answer(200, `{"object":"customer"}`), read, asaas.CallUnknown, 200, "it has no id: see the API's address"},
		{"a page for people", answer(200, "\n <!doctype html><p>Log in</p>"), create, asaas.CallUnknown, 200, "a proxy or a wrong host"},
		{"a firewall's page", answer(403, "<html>ERROR: The request could not be satisfied</html>"), create, asaas.CallRejected, 403, "a proxy or a wrong host"},
		{"a load balancer's page", answer(502, "<html>Bad Gateway</html>"), create, asaas.CallUnknown, 502, "a proxy or a wrong host"},
		{"larger than is read", answer(200, `{"id":"a"}`+strings.Repeat(" ", 8<<20)), read, asaas.CallUnknown, 200, "larger than 8388608 bytes"},
		{"a refusal that is larger than is read", answer(400, refusal("a", strings.Repeat("x", 8<<20))), create, asaas.CallRejected, 400, "answered with 400: correct"},
		{"not what was sent", answer(400, refusal("invalid_url", "A URL é inválida")), create, asaas.CallRejected, 400, "(invalid_url: A URL é inválida): correct what it names"},
		{"a refusal of another form", answer(400, `{"errors":"no"}`), create, asaas.CallRejected, 400, "answered with 400: correct what it names"},
		{"the key of the other environment", answer(401, refusal("invalid_environment", "a")), read, asaas.CallRejected, 401, "(invalid_environment: a): Asaas does not take the API key: it may be of the other environment"},
		{"no key arrived", answer(401, refusal("access_token_not_found", "a")), read, asaas.CallRejected, 401, "(access_token_not_found: a): Asaas does not take the API key: it may be of the other environment, not whole, disabled or deleted, or a proxy drops the header access_token"},
		{"half a key", answer(401, refusal("invalid_access_token_format", "a")), read, asaas.CallRejected, 401, "(invalid_access_token_format: a): Asaas does not take the API key"},
		{"a key that was deleted", answer(401, refusal("invalid_access_token", "a")), read, asaas.CallRejected, 401, "disabled or deleted"},
		{"no word about the key", answer(401, ""), read, asaas.CallRejected, 401, "disabled or deleted"},
		{"no permission", answer(403, refusal("insufficient_permission", "a")), removeBackoff, asaas.CallRejected, 403, "no permission for it (for webhooks WEBHOOK: READ to look, READ_WRITE to change)"},
		{"no such webhook", answer(404, ""), removeBackoff, asaas.CallRejected, 404, "asaas: RemoveBackoff(" + webhookID + "): it was answered with 404: there is nothing for the API key at this address: see the id"},
		{"no such address", answer(404, ""), create, asaas.CallRejected, 404, "there is nothing for the API key at this address"},
		{"a request that the server gave up on", answer(408, ""), create, asaas.CallUnknown, 408, "before you do it again"},
		{"what nobody has seen yet", answer(418, "a teapot"), create, asaas.CallRejected, 418, "see https://docs.asaas.com/docs/http-response-codes"},
		{"too many requests, and no word about how many", answer(429, ""), create, asaas.CallNotDelivered, 429, "25,000 in 12 hours"},
		{"a server in trouble", answer(500, refusal("a", "b")), create, asaas.CallUnknown, 500, "(a: b): Asaas is in trouble, it may have been done"},
		{"a server in trouble, asked to remove the backoff", answer(503, ""), removeBackoff, asaas.CallUnknown, 503, "it may have been done"},
		{"a redirect", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(307)
		}, create, asaas.CallRejected, 307, "a redirect is not followed"},
		{"a connection that is reset", reset, create, asaas.CallUnknown, 0, "there is no answer, it may have been done"},
		{"a connection that ends", raw(""), removeBackoff, asaas.CallUnknown, 0, "there is no answer, it may have been done"},
		{"an answer that ends too soon", raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"), create, asaas.CallUnknown, 200, "could not be read: unexpected EOF"},
		{"no HTTP", raw("SSH-2.0-OpenSSH_9.2\r\n"), create, asaas.CallUnknown, 0, "malformed HTTP"},
		{"a captive portal", answer(200, "<html>Welcome</html>"), removeBackoff, asaas.CallUnknown, 200, "a proxy or a wrong host"},
		{"an answer where there is none", answer(200, "{}"), removeBackoff, asaas.CallUnknown, 200, "there is an answer where Asaas gives none"},
		{"an id that is no more deleted than before", answer(200, `{"deleted":false,"id":"a"}`), remove, asaas.CallUnknown, 200, "does not say that the webhook is deleted"},
		{"a queue that did not start", answer(200, `{"id":"a","interrupted":true}`), resume, asaas.CallRejected, 200, "asaas: Resume(" + webhookID + "): the queue is still stopped"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			err := tt.call(t.Context(), clientWith(t, tt.handler))
			e, ok := errors.AsType[*asaas.APIError](err)
			if !ok {
				t.Fatalf("got the error %v, want an APIError", err)
			}
			if e.Outcome != tt.outcome || e.Status != tt.status || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %s, status %d: %v\nwant %s, status %d: %q", e.Outcome, e.Status, err, tt.outcome, tt.status, tt.want)
			}
		})
	}
}

func TestWithoutAConnectionNothingIsDelivered(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	client.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}}
	server := httptest.NewUnstartedServer(answer(200, everything))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	stranger := newClient(t)
	stranger.BaseURL, stranger.Transport = server.URL, &http.Transport{}
	for _, c := range []*asaas.Client{client, stranger} {
		err := create(t.Context(), c)
		e, ok := errors.AsType[*asaas.APIError](err)
		if !ok || e.Outcome != asaas.CallNotDelivered || !strings.Contains(err.Error(), "there is no connection") {
			t.Errorf("got the error %v", err)
		}
	}
	if err := create(t.Context(), client); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the cause is lost: %v", err)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAnErrorThatIsNotOneOfDialingLeavesItUnknown(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	client.Transport = transport(func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED })
	if e, ok := errors.AsType[*asaas.APIError](create(t.Context(), client)); !ok || e.Outcome != asaas.CallUnknown {
		t.Errorf("got %v", e)
	}
}

func TestAConnectionThatIsLostAfterwardsLeavesItUnknown(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	client := clientWith(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body) // else the server does not see the client leave
		cancel()
		<-r.Context().Done() // a server that never answers
	})
	err := create(ctx, client)
	e, ok := errors.AsType[*asaas.APIError](err)
	if !ok || e.Outcome != asaas.CallUnknown || !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v", err)
	}
}

func TestARedirectTakesTheKeyNowhere(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		client := clientWith(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		for _, call := range []func(context.Context, *asaas.Client) error{read, create} {
			if e, ok := errors.AsType[*asaas.APIError](call(t.Context(), client)); !ok || e.Status != status {
				t.Errorf("%d: got %v", status, e)
			}
		}
	}
}

func TestNoErrorHasASecret(t *testing.T) {
	t.Parallel()
	const token = "the-token-of-the-webhook"
	escaped := strings.ReplaceAll(apiKey, "$", `\u0024`)
	for reason, handler := range map[string]http.HandlerFunc{
		"the key":                 answer(401, refusal("a", "a chave "+apiKey+" é inválida")),
		"the key as a code":       answer(401, refusal(apiKey, "a")),
		"the key, escaped":        answer(401, refusal("a", escaped)),
		"the key, escaped twice":  answer(401, refusal("a", strings.ReplaceAll(escaped, `\`, `\\`))),
		"the key in a URL":        answer(401, refusal("a", "?k="+strings.ReplaceAll(apiKey, "$", "%24"))),
		"the key without its $":   answer(401, refusal("a", apiKey[1:])),
		"the key, cut off":        answer(401, refusal("a", apiKey[:len(apiKey)-3])),
		"at the end of what fits": answer(401, refusal("a", strings.Repeat("x", 195)+apiKey)),
		"the webhook's token":     answer(400, refusal("a", token+" is weak")),
		"the key for an answer":   raw(apiKey + "\r\n\r\n"),
		"the token in an answer":  raw(token + "\r\n\r\n"),
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			err := create(t.Context(), clientWith(t, handler))
			e, ok := errors.AsType[*asaas.APIError](err)
			if !ok {
				t.Fatalf("got the error %v, want an APIError", err)
			}
			said := fmt.Sprintf("%v\n%v\n%+v", err, errors.Unwrap(err), e.Errors)
			if strings.Contains(said, "secret") || strings.Contains(said, "000Abc") || strings.Contains(said, token) {
				t.Errorf("there is a secret:\n%s", said)
			}
		})
	}
}

func TestWhatAsaasSaysIsShortAndOnOneLine(t *testing.T) {
	t.Parallel()
	details := `{"code":"` + strings.Repeat("c", 5000) + `","description":"a\r\nb\u001b[31m\u202e` + strings.Repeat("ç", 5000) + `"}`
	err := create(t.Context(), clientWith(t, answer(400, `{"errors":[`+strings.Repeat(details+",", 19)+details+`]}`)))
	if n := len([]rune(err.Error())); n > 2500 || strings.ContainsAny(err.Error(), "\r\n\x1b\u202e") {
		t.Errorf("got %d characters: %q", n, err)
	}
}

func TestThePauseThatIsAskedForIsTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason       string
		status       int
		after, reset string
		want         time.Duration
	}{
		{"in seconds", 429, "7", "", 7 * time.Second},
		{"more than the rate limit tells", 429, "7", "3", 7 * time.Second},
		{"a server in trouble", 503, "20", "", 20 * time.Second},
		{"the rate limit of a server in trouble says nothing", 503, "", "20", 0},
		{"more than a day", 503, "99999999", "", 24 * time.Hour},
		{"a date", 503, "Fri, 31 Dec 2100 23:59:59 GMT", "", 24 * time.Hour},
		{"a date that is over", 429, "Fri, 31 Dec 1999 23:59:59 GMT", "", 0},
		{"nothing that can be read", 429, "soon", "", 0},
	} {
		client, _ := clientOn(t, scriptedAnswer{status: tt.status, after: tt.after, reset: tt.reset})
		e, _ := errors.AsType[*asaas.APIError](client.Resume(t.Context(), "a"))
		if e == nil || e.RetryAfter != tt.want {
			t.Errorf("%s: got %v, want %s", tt.reason, e, tt.want)
		}
	}
}

func TestAPauseIsWaitedForBeforeALook(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 503} {
		synctest.Test(t, func(t *testing.T) {
			client, s := clientOn(t, scriptedAnswer{status: status, after: "20"}, looked(false, 0))
			start := time.Now()
			if _, err := client.Webhook(t.Context(), "a"); err != nil || s.sent.Load() != 2 || time.Since(start) != 20*time.Second {
				t.Errorf("%d: %d requests in %s, %v", status, s.sent.Load(), time.Since(start), err)
			}
		})
	}
}

func TestAsaasCodesAndTheEndOfItsRateLimitAreThere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason, reset string
		after         time.Duration
	}{
		{"seconds", "30", 30 * time.Second},
		{"nothing", "", 0},
		{"with a space", " 7", 7 * time.Second},
		{"no number", "1.5", 0},
		{"more than a day", "9223372036854775807", 24 * time.Hour},
		{"more than there are numbers", "99999999999999999999", 0},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			err := create(t.Context(), clientWith(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("RateLimit-Reset", tt.reset)
				answer(429, refusal("too_many", "Limite atingido"))(w, r)
			}))
			e, ok := errors.AsType[*asaas.APIError](err)
			if !ok || e.Outcome != asaas.CallNotDelivered || e.RetryAfter != tt.after {
				t.Errorf("got %+v", e)
			}
			if diff := cmp.Diff([]asaas.ErrorDetail{{Code: "too_many", Description: "Limite atingido"}}, e.Errors); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
