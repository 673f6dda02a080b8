package asaas

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"unicode"
)

// operation is a call of the API, as far as it is the same each time.
type operation struct {
	name   string // the Client's method
	method string
	path   string // below BaseURL, with {id} for the webhook's or the charge's
	id     string
	query  url.Values
	body   any    // nil sends none
	token  string // the webhook's, a secret in the body
}

// request makes a request of an operation. An error means that it must not be
// sent.
func (c *Client) request(ctx context.Context, o operation) (*http.Request, error) {
	if err := c.checkSettings(); err != nil {
		return nil, err
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

func (c *Client) checkSettings() error {
	switch {
	case c.key == nil:
		return errors.New("the Client has no API key: make it with NewClient")
	case strings.TrimSpace(c.UserAgent) == "":
		return errors.New("UserAgent is empty, and Asaas demands one: name your application in it")
	case strings.ContainsFunc(c.UserAgent, unicode.IsControl):
		return errors.New("UserAgent has a line break or the like: take it away")
	case c.Timeout <= 0:
		return errors.New("the Timeout is not positive: set how long a call may take")
	}
	return nil
}

var errBaseURL = errors.New("the API's address is none: give one such as https://api.asaas.com/v3")

// target is the URL of an operation.
func (c *Client) target(o operation) (string, error) {
	base, err := url.Parse(c.BaseURL)
	switch {
	case err != nil, base.Host == "", base.Scheme != "https" && base.Scheme != "http",
		base.User != nil, base.RawQuery != "", base.Fragment != "":
		return "", errBaseURL
	case base.Scheme == "http" && c.environment != Sandbox && !isThisMachine(base.Hostname()):
		return "", errors.New("the API's address has http, which would send the API key unencrypted: write https")
	}
	path := o.path
	if strings.Contains(path, "{id}") {
		if o.id == "" || o.id == "." || o.id == ".." {
			if strings.HasPrefix(path, "/payments/") {
				return "", errors.New("the charge's id is empty: give one of those that Asaas made")
			}
			return "", errors.New("the webhook's id is empty: see the ids that Webhooks lists")
		}
		path = strings.Replace(path, "{id}", url.PathEscape(o.id), 1)
	}
	target := strings.TrimRight(c.BaseURL, "/") + path
	query := make(url.Values) // without the parameters that are not asked for
	for name, values := range o.query {
		if values[0] != "" {
			query[name] = values
		}
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return target, nil
}

func isThisMachine(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// sender is an http.Client that stays with the host that it was given.
func (c *Client) sender() *http.Client {
	return &http.Client{
		Transport:     c.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// connection records a transport's calls about a request's connection.
type connection struct{ wanted, had atomic.Bool }

func (c *connection) watch(r *http.Request) *http.Request {
	return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { c.wanted.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { c.had.Store(true) },
	}))
}

// none reports that there never was one, so that nothing can have been sent.
func (c *connection) none() bool { return c.wanted.Load() && !c.had.Load() }
