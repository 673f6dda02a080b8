package asaas

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
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

// Client manages an account's webhooks, and gets a queue going again that Asaas
// has slowed down or stopped. Several goroutines may use it at once.
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
	// the key would go with them. With a Transport that does not report its
	// connections to a [net/http/httptrace.ClientTrace], as [http.Transport] does, a
	// call that fails without an answer is [CallUnknown]. Default: nil,
	// http.DefaultTransport.
	Transport http.RoundTripper

	// Timeout is the time that a call may take, with its answer read, and with a
	// pause that Asaas asks for. Default: 30 seconds.
	Timeout time.Duration

	// Receiver takes the [DryRunProbe] of a [Recover] to the webhook's URL.
	// Default: nil, http.DefaultTransport.
	Receiver http.RoundTripper

	// Wait waits for d, and returns an error if ctx ends before. A fake Asaas in
	// virtual time sets it. Default: nil, which waits in real time.
	Wait func(ctx context.Context, d time.Duration) error `json:"-"`

	// MinRemoveBackoff is the time in which RemoveBackoff refuses to be called again for
	// the same webhook. 0 never refuses. Default: 1 minute.
	MinRemoveBackoff time.Duration

	// StateDir is a folder in which RemoveBackoff notes when it was called, so
	// that MinRemoveBackoff holds for all processes of this machine that use the
	// folder. It is made if it does not exist. Default: "", and it holds for this
	// Client alone.
	StateDir string

	// Poll is the interval at which [Recover] looks at the queue. It takes three looks in a
	// row without a failure for a recovery: below 4 seconds they end before Asaas
	// has given up a receiver that does not answer. Default: 5 seconds.
	Poll time.Duration

	environment Environment
	key         func() string // a function, so that nothing that prints a Client prints the key
	removals    *removals
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
	return &Client{
		BaseURL:          environment.baseURL(),
		UserAgent:        defaultUserAgent(),
		Timeout:          30 * time.Second,
		MinRemoveBackoff: time.Minute,
		Poll:             5 * time.Second,
		environment:      environment,
		key:              func() string { return apiKey },
		removals:         newRemovals(),
	}, nil
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

// String names the environment, and never the key.
func (c *Client) String() string { return "asaas.Client(" + string(c.environment) + ")" }

// GoString is String.
func (c *Client) GoString() string { return c.String() }

// LogValue implements [slog.LogValuer]. It is String.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }
