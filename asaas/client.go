package asaas

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"github.com/paghooks/paghooks/idem"
)

// Environment is one of the two installations of Asaas. An account, its API
// keys and its webhooks are in one of them, and unknown to the other.
type Environment string

const (
	Production Environment = "production"
	Sandbox    Environment = "sandbox"
)

func (e Environment) baseURL() string {
	if e == Sandbox {
		return "https://api-sandbox.asaas.com/v3"
	}
	return "https://api.asaas.com/v3"
}

// Client manages an account's webhooks, gets a queue going again that Asaas has slowed down or
// stopped, and makes and reads charges. Several goroutines may use it at once.
//
// Every error of a call is an [*APIError]. A call that changes something is sent once,
// and never repeated by the Client; a call that only reads is repeated twice if Asaas is
// in trouble (5xx), the connection was cut, or Asaas asks for a pause, as far as
// that fits into the time there is.
//
// The exported fields are settings: change them before the first call.
//
// See https://docs.asaas.com/docs/create-new-webhook-via-api.
type Client struct {
	// BaseURL is the URL of the API, up to its version. The key is not sent
	// unencrypted: http is for this machine and the sandbox. Default: that of
	// the Environment, https://api.asaas.com/v3 for example.
	BaseURL string

	// UserAgent names the application, which Asaas demands: without one nothing
	// is sent. Default: this module and its version.
	UserAgent string

	// Transport makes the requests. Redirects are not followed with any Transport:
	// the key would go with them. Default: nil, http.DefaultTransport.
	Transport http.RoundTripper

	// Timeout is the time that a call may take, with its answer read, and with a
	// pause that Asaas asks for. Default: 30 seconds.
	Timeout time.Duration

	// Receiver takes the dry runs of [Recover] and package webhook to
	// the webhook's URL. Default: nil, a new connection for each.
	Receiver http.RoundTripper

	// Try is asked by [Recover] whether to try the handlers with the oldest event that
	// failed, before anything is changed. The running application runs its handler on
	// it, and rolls back; HTTP requests and e-mails of the handler are real, unless it
	// asks [idem.IsDryRun]. Default: nil, the handlers are not tried.
	Try func(ctx context.Context, oldest idem.StoredEvent) bool `json:"-"`

	// Wait waits for d, and returns an error if ctx ends before. A fake Asaas in
	// virtual time sets it. Default: nil, which waits in real time.
	Wait func(ctx context.Context, d time.Duration) error `json:"-"`

	// Poll is the interval at which [Recover] looks at the queue. It takes three looks in a
	// row without a failure for a recovery: below 4 seconds they end before Asaas
	// has given up a receiver that does not answer. Default: 5 seconds.
	Poll time.Duration

	environment Environment
	key         func() string // a function, so that nothing that prints a Client prints the key
	broken      error         // why no call can be made, of a client of Clients
}

// NewClient returns a Client for the account of an API key, with its settings at
// their defaults. The error, which never has the key, names the mistake in it: it is
// empty, has white space, or is not a key of the environment. A key of production
// starts with $aact_prod_, one of the sandbox with $aact_hmlg_. A key that starts
// otherwise may be of either environment, and is refused: make a new one.
//
// See https://docs.asaas.com/docs/chaves-de-api.
func NewClient(environment Environment, apiKey string) (*Client, error) {
	if environment != Production && environment != Sandbox {
		return nil, errors.New("asaas: there is no such environment: give asaas.Production or asaas.Sandbox")
	}
	if err := checkKey(environment, apiKey); err != nil {
		return nil, err
	}
	return newClient(environment, apiKey), nil
}

func newClient(environment Environment, apiKey string) *Client {
	return &Client{
		BaseURL:     environment.baseURL(),
		UserAgent:   defaultUserAgent(),
		Timeout:     30 * time.Second,
		Poll:        5 * time.Second,
		environment: environment,
		key:         func() string { return apiKey },
	}
}

// Clients yields a client for each account of a list: the accounts by their scopes, as in [idem.Event], "" for one
// without a scope, and their API keys. It reads the list each time that it is ranged over, so that an account which
// joins is seen by whoever looks at all of them from time to time, such as Watches of package webhook.
//
//	accounts := asaas.Clients(asaas.Production, func(yield func(scope, key string) bool) { … }) // from a table of yours
//
// A key that [NewClient] refuses does not end the list: each call of its client fails with that error.
func Clients(environment Environment, keys iter.Seq2[string, string]) iter.Seq2[string, *Client] {
	return func(yield func(string, *Client) bool) {
		for account, key := range keys {
			client, err := NewClient(environment, key)
			if err != nil {
				client = newClient(environment, "")
				client.broken = fmt.Errorf("the account %q: %w", account, err)
			}
			if !yield(account, client) {
				return
			}
		}
	}
}

const (
	productionPrefix = "$aact_prod_"
	sandboxPrefix    = "$aact_hmlg_"
)

func checkKey(environment Environment, key string) error {
	own, other := productionPrefix, sandboxPrefix
	if environment == Sandbox {
		own, other = other, own
	}
	switch {
	case key == "":
		return errors.New("asaas: the API key is empty: is the environment variable set? " +
			"A shell takes the $ at its start for a variable, so put the key in single quotes")
	case strings.ContainsFunc(key, isNoKeyCharacter):
		return errors.New("asaas: the API key has a space, a line break or another character that no key has: take it away")
	case strings.HasPrefix(key, other):
		return errors.New("asaas: the API key is not of the environment " + string(environment) +
			", it starts with " + other + ": give the other environment, or the other key")
	case !strings.HasPrefix(key, own):
		return errors.New("asaas: the API key does not start with " + own + ": copy it whole, with its $, in single quotes where a shell reads it; " +
			"if it is one of those from before there were prefixes, make a new one at Asaas")
	case key == own:
		return errors.New("asaas: the API key ends after " + own + ": copy it whole")
	}
	return nil
}

func isNoKeyCharacter(r rune) bool { return r <= ' ' || r > '~' }

const modulePath = "github.com/paghooks/paghooks"

func defaultUserAgent() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == modulePath && strings.HasPrefix(m.Version, "v") {
				version = m.Version
			}
		}
	}
	return "paghooks/" + version + " (+https://" + modulePath + ")"
}

// Environment returns the installation of Asaas that the key is of.
func (c *Client) Environment() Environment { return c.environment }

// String names the environment, and never the key.
func (c *Client) String() string { return "asaas.Client(" + string(c.environment) + ")" }

// LogValue implements [slog.LogValuer]. It is String.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }

// operation is a call of the API.
type operation struct {
	name   string // the Client's method
	method string
	path   string // below BaseURL, with {id} for the webhook's or the charge's
	id     string
	query  url.Values // without the parameters that are empty
	body   any        // nil sends none
	token  string     // the webhook's, a secret in the body
}

// send does an operation that is answered with JSON.
func send[T any](ctx context.Context, c *Client, o operation) (*T, error) {
	answer := new(T)
	if err := c.call(ctx, o, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// pauses are the waits before a call that only reads is sent again.
var pauses = []time.Duration{500 * time.Millisecond, 2 * time.Second}

// call does an operation and decodes the answer. A nil answer means that none
// is wanted: only 204 is success then, which no captive portal answers.
func (c *Client) call(ctx context.Context, o operation, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	switch body := o.body.(type) {
	case WebhookCreate:
		o.token = body.AuthToken.Or("")
	case WebhookUpdate:
		o.token = body.AuthToken.Or("")
	}
	failed := c.attempt(ctx, o, answer)
	for _, pause := range pauses {
		if failed == nil || o.method != http.MethodGet {
			break
		}
		switch {
		case failed.isPause():
			pause = failed.RetryAfter
		case !failed.passing:
			return failed
		}
		deadline, _ := ctx.Deadline()
		if pause >= time.Until(deadline) || c.wait(ctx, pause) != nil {
			break
		}
		failed = c.attempt(ctx, o, answer)
	}
	if failed != nil {
		return failed
	}
	return nil
}

// maxAnswer is the number of bytes of an answer that are read. A page of 100 charges
// has some 300 kB; long descriptions, splits and refunds make it several times that.
const maxAnswer = 8 << 20

// attempt sends an operation once.
func (c *Client) attempt(ctx context.Context, o operation, answer any) *APIError {
	r, err := c.request(ctx, o)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return c.refused(o, err)
	}
	staying := http.Client{
		Transport:     c.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := staying.Do(r)
	if err != nil {
		return c.unanswered(o, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("it is larger than %d bytes", maxAnswer)
	}
	return c.judge(o, answered{status: response.StatusCode, header: response.Header, body: body, err: err}, answer)
}

// request makes the request of an operation. An error means that it must not be
// sent.
func (c *Client) request(ctx context.Context, o operation) (*http.Request, error) {
	switch {
	case c.broken != nil:
		return nil, c.broken
	case c.key == nil:
		return nil, errors.New("the Client has no API key: make it with NewClient")
	case strings.TrimSpace(c.UserAgent) == "":
		return nil, errors.New("UserAgent is empty, and Asaas demands one: name your application in it")
	case strings.ContainsFunc(c.UserAgent, unicode.IsControl):
		return nil, errors.New("UserAgent has a line break or the like: take it away")
	case c.Timeout <= 0:
		return nil, errors.New("the Timeout is not positive: set how long a call may take")
	}
	target, err := c.target(o)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if o.body != nil {
		data, err := json.Marshal(o.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, o.method, target, body)
	if err != nil {
		return nil, errBaseURL
	}
	r.Header.Set("access_token", c.key())
	r.Header.Set("User-Agent", c.UserAgent)
	r.Header.Set("Accept", "application/json")
	if body != nil { // a GET that has one is answered with 403
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

var errBaseURL = errors.New("the API's address is none: give one such as https://api.asaas.com/v3")

// target returns the URL of an operation.
func (c *Client) target(o operation) (string, error) {
	base, err := url.Parse(c.BaseURL)
	switch {
	case err != nil, base.Host == "", base.Scheme != "https" && base.Scheme != "http",
		base.User != nil, base.RawQuery != "", base.Fragment != "":
		return "", errBaseURL
	case base.Scheme == "http" && c.environment != Sandbox && base.Hostname() != "localhost" && !net.ParseIP(base.Hostname()).IsLoopback():
		return "", errors.New("the API's address has http, which would send the API key unencrypted: write https")
	case strings.Contains(o.path, "{id}") && (o.id == "" || o.id == "." || o.id == ".."):
		return "", errors.New("the id is empty: give one that Asaas made; Webhooks lists those of webhooks")
	}
	target := strings.TrimRight(c.BaseURL, "/") + strings.Replace(o.path, "{id}", url.PathEscape(o.id), 1)
	maps.DeleteFunc(o.query, func(_ string, values []string) bool { return values[0] == "" })
	if len(o.query) > 0 {
		target += "?" + o.query.Encode()
	}
	return target, nil
}

// wait waits for d. It returns an error if ctx ends before.
func (c *Client) wait(ctx context.Context, d time.Duration) error {
	if c.Wait != nil {
		return c.Wait(ctx, d)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
