package asaas_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// scripted is a transport that gives these answers, and counts them.
type scripted struct {
	sent    atomic.Int64
	answers []scriptedAnswer
}

type scriptedAnswer struct {
	status int
	body   string
	reset  string // RateLimit-Reset
	after  string // Retry-After
	err    error
}

func (s *scripted) RoundTrip(*http.Request) (*http.Response, error) {
	n := int(s.sent.Add(1)) - 1
	a := s.answers[min(n, len(s.answers)-1)]
	if a.err != nil {
		return nil, a.err
	}
	h := http.Header{}
	if a.reset != "" {
		h.Set("RateLimit-Reset", a.reset)
	}
	if a.after != "" {
		h.Set("Retry-After", a.after)
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

// arrives is the answer of an application that a canary reaches.
func arrives(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 503, Body: io.NopCloser(strings.NewReader(`{"received":false,"dry_run":"done"}`))}, nil
}

// clientOn returns a client whose calls are answered so, and whose webhooks' receiver is sound.
func clientOn(t *testing.T, answers ...scriptedAnswer) (*asaas.Client, *scripted) {
	t.Helper()
	client, s := newClient(t), &scripted{answers: answers}
	client.Transport, client.Receiver = s, transport(arrives)
	return client, s
}

func TestWhatOnlyReadsIsSentAgainInABadMoment(t *testing.T) {
	t.Parallel()
	limited := scriptedAnswer{status: 429, reset: "20"}
	fine := scriptedAnswer{status: 200, body: everything}
	for _, tt := range []struct {
		reason  string
		answers []scriptedAnswer
		call    func(context.Context, *asaas.Client) error
		sent    int64
		after   time.Duration
		ok      bool
	}{
		{"the pause fits", []scriptedAnswer{limited, fine}, read, 2, 20 * time.Second, true},
		{"it is limited again", []scriptedAnswer{limited, limited}, read, 2, 20 * time.Second, false},
		{"the pause is longer than Timeout", []scriptedAnswer{{status: 429, reset: "30"}, fine}, read, 1, 0, false},
		{"no pause is told", []scriptedAnswer{{status: 429}, fine}, read, 1, 0, false},
		{"trouble that passes", []scriptedAnswer{{status: 500, reset: "1"}, fine}, read, 2, 500 * time.Millisecond, true},
		{"trouble that stays", []scriptedAnswer{{status: 502}, {status: 503}, {status: 500}}, read, 3, 2500 * time.Millisecond, false},
		{"trouble, and then the rate limit", []scriptedAnswer{{status: 500}, limited, fine}, read, 3, 20500 * time.Millisecond, true},
		{"what stays as it is", []scriptedAnswer{{status: 404}}, read, 1, 0, false},
		{"a create in trouble", []scriptedAnswer{{status: 500}}, create, 1, 0, false},
		{"a create", []scriptedAnswer{limited, fine}, create, 1, 0, false},
		{"removing the backoff", []scriptedAnswer{limited, {status: 204}}, removeBackoff, 1, 0, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, s := clientOn(t, tt.answers...)
				start := time.Now()
				err := tt.call(t.Context(), client)
				if s.sent.Load() != tt.sent || time.Since(start) != tt.after || (err == nil) != tt.ok {
					t.Errorf("sent %d times in %s: %v", s.sent.Load(), time.Since(start), err)
				}
			})
		})
	}
}

func TestAPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, s := clientOn(t, scriptedAnswer{status: 429, reset: "20"})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		err := read(ctx, client)
		if e, ok := errors.AsType[*asaas.APIError](err); !ok || e.Status != 429 || s.sent.Load() != 1 || time.Since(start) != time.Second {
			t.Errorf("sent %d times in %s: %v", s.sent.Load(), time.Since(start), err)
		}
	})
}

func TestASlowServerHasUntilTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		client.Transport = transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		start := time.Now()
		err := create(t.Context(), client)
		e, ok := errors.AsType[*asaas.APIError](err)
		if !ok || e.Outcome != asaas.CallUnknown || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 30*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

func TestTheTimeLeftCountsFromTheNewestEventThatCame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		now := time.Now()
		for _, tt := range []struct {
			reason  string
			created time.Time
			want    time.Duration
		}{
			{"just now", now, 14 * day},
			{"four days ago", now.Add(-4 * day), 10 * day},
			{"longer ago than they are kept", now.Add(-15 * day), 0},
			{"none ever came", time.Time{}, 0},
		} {
			if got := asaas.TimeLeft(tt.created); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.reason, got, tt.want)
			}
		}
	})
}
