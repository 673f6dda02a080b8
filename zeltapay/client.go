package zeltapay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client reads the payment links of an account. Several goroutines may use it at once. The exported
// fields are settings: change them before the first call.
//
// See https://docs-pay.zelta.dev/api/overview.
type Client struct {
	// BaseURL is the URL of the API, up to its version. Default: https://api-pay.zelta.dev/v1.
	BaseURL string

	// Transport makes the requests. Redirects are not followed with any Transport: the key would go
	// with them. Default: nil, http.DefaultTransport.
	Transport http.RoundTripper

	// Timeout is the time that one request may take. Default: 30 seconds.
	Timeout time.Duration

	key func() string // a function, so that nothing that prints a Client prints the key
}

// NewClient returns a Client for the account of an API key, which the dashboard makes. The key is not
// the webhook's secret.
func NewClient(apiKey string) (*Client, error) {
	if apiKey == "" || strings.ContainsFunc(apiKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("zeltapay: the API key is empty, or has a space or a line break: set it to the key, and nothing else")
	}
	return &Client{
		BaseURL: "https://api-pay.zelta.dev/v1",
		Timeout: 30 * time.Second,
		key:     func() string { return apiKey },
	}, nil
}

// Link is a payment link.
type Link struct {
	ID          string   `json:"id"` // "pl_…", the LinkID of its payments
	Status      string   `json:"status"`
	Amount      Cents    `json:"amount"` // to pay; the list does not say what was paid
	Metadata    Metadata `json:"metadata"`
	CompletedAt Time     `json:"completedAt"` // "" where Zelta Pay does not say it
	IsTest      bool     `json:"isTest"`
}

// Completed yields each payment link of the account that was paid, and none of a test. It finds payments
// whose events never came: Zelta Pay has no list of events, and keeps those that it could not deliver
// for 30 days. A link that is paid twice is one link.
//
// Zelta Pay documents no filter by time, and no order: each call reads all of them, 100 at a time, 60
// requests a minute. It waits where Zelta Pay asks for a pause. After an error it ends.
//
// See https://docs-pay.zelta.dev/api/payment-links/list.
func (c *Client) Completed(ctx context.Context) iter.Seq2[*Link, error] {
	return func(yield func(*Link, error) bool) {
		seen := make(map[string]bool)
		for offset := 0; ; {
			page, err := c.page(ctx, offset)
			if err != nil {
				yield(nil, fmt.Errorf("zeltapay: reading the completed payment links from %d on: %w", offset, err))
				return
			}
			if len(page) == 0 { // a page may be shorter than it was asked to be
				return
			}
			before := len(seen)
			for _, link := range page {
				known := seen[link.ID]
				seen[link.ID] = true
				if !known && !link.IsTest && !yield(link, nil) {
					return
				}
			}
			if len(seen) == before {
				yield(nil, fmt.Errorf("zeltapay: the list of payment links does not end: from %d on it has only links that it had before", offset))
				return
			}
			offset += len(page)
		}
	}
}

// pageSize is the number of links that one request asks for. Zelta Pay documents no limit.
const pageSize = 100

// pauses is the number of times that one page is asked for again because Zelta Pay wants a pause.
const pauses = 3

func (c *Client) page(ctx context.Context, offset int) ([]*Link, error) {
	for try := 0; ; try++ {
		status, h, body, err := c.get(ctx, "/payment-links?"+url.Values{
			"status": {"completed"}, "isTest": {"false"}, "lim": {strconv.Itoa(pageSize)}, "off": {strconv.Itoa(offset)},
		}.Encode())
		switch {
		case err != nil:
			return nil, err
		case status != http.StatusTooManyRequests || try == pauses:
			return links(status, bytes.ReplaceAll(body, []byte(c.key()), []byte("[API key]")))
		}
		select {
		case <-time.After(pause(h, time.Now())):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *Client) get(ctx context.Context, path string) (status int, h http.Header, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.BaseURL+path, nil)
	if err != nil {
		return 0, nil, nil, err
	}
	r.Header.Set("X-API-Key", c.key())
	client := http.Client{Transport: c.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	return answer.StatusCode, answer.Header, body, err
}

// pause returns the wait until the limit of requests allows more: RateLimit-Reset is in Unix seconds, and
// counts the requests of a minute.
func pause(h http.Header, now time.Time) time.Duration {
	const most = time.Minute + time.Second
	reset, err := strconv.ParseInt(h.Get("RateLimit-Reset"), 10, 64)
	if err != nil {
		return most
	}
	return min(max(time.Unix(reset, 0).Sub(now), time.Second), most)
}

// links reads a page. One page of the documentation has the list in data, another in its member paymentLinks.
func links(status int, body []byte) (page []*Link, err error) {
	var answer struct {
		Success bool
		Message string
		Error   struct{ Code string }
		Data    json.RawMessage
	}
	err = json.Unmarshal(body, &answer)
	if status != http.StatusOK || err == nil && !answer.Success {
		return nil, fmt.Errorf("it was answered with %d (%.60q, %.200q): see that the API key is whole, and of this account",
			status, answer.Error.Code, answer.Message)
	}
	if err == nil {
		var object struct{ PaymentLinks *[]*Link }
		if err = json.Unmarshal(answer.Data, &page); err != nil {
			if err = json.Unmarshal(answer.Data, &object); err == nil && object.PaymentLinks == nil {
				err = errors.New("data has no list of links")
			} else if err == nil {
				page = *object.PaymentLinks
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the answer is not the JSON that it should be: %w", err)
	}
	for _, link := range page {
		if link == nil || link.ID == "" || link.Amount <= 0 || link.Status != "completed" {
			return nil, errors.New("the list has a link without an id or an amount, or that is not completed")
		}
	}
	return page, nil
}
