package health_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// worker is a part of an application's own.
type worker func(ctx context.Context, limits check.Limits) []check.Result

func (w worker) Examine(ctx context.Context, limits check.Limits) []check.Result {
	return w(ctx, limits)
}

func TestHealthIsLookedAtOnceASecondHoweverManyAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		h := health.New(worker(func(context.Context, check.Limits) []check.Result {
			looks++
			time.Sleep(500 * time.Millisecond)
			return []check.Result{{Source: "part", Name: "looks", Healthy: true}}
		}))
		ask := func(n int) {
			var strangers sync.WaitGroup
			for range n {
				strangers.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)) })
			}
			strangers.Wait()
		}
		for _, step := range []struct {
			reason string
			after  time.Duration
			looks  int
		}{
			{"many at once", 0, 1},
			{"within a second", 900 * time.Millisecond, 1},
			{"after a second", 100 * time.Millisecond, 2},
		} {
			time.Sleep(step.after)
			if ask(100); looks != step.looks {
				t.Errorf("%s: it has looked %d times, want %d", step.reason, looks, step.looks)
			}
		}
	})
}

func TestPartsOfAnApplicationSayHowTheyAre(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var hangs atomic.Int32
		says := func(says string) health.Part {
			return worker(func(_ context.Context, limits check.Limits) []check.Result {
				return []check.Result{{Source: "mailer", Name: "mails", Healthy: limits.MaxFailures > 5, Says: says}}
			})
		}
		var log strings.Builder
		h := health.New(
			says("9 mails wait"),
			worker(func(context.Context, check.Limits) []check.Result { panic("a secret") }),
			worker(func(context.Context, check.Limits) []check.Result {
				hangs.Add(1)
				<-release
				return []check.Result{{Source: "slow", Name: "speed", Healthy: true}}
			}),
		)
		h.Logger = slog.New(slog.NewTextHandler(&log, nil))
		start := time.Now()
		want := []string{
			"mailer mails 9 mails wait",
			"health_test.worker answer its Examine has panicked: see the error in this application's log",
			"health_test.worker answer its Examine has not returned: it must end with its context",
		}
		look := func() (got []string) {
			for _, c := range h.Report().Checks {
				if !c.Healthy {
					got = append(got, c.Source+" "+c.Name+" "+c.Says)
				}
			}
			return got
		}
		for range 3 {
			if diff := cmp.Diff(want, look()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			time.Sleep(time.Second)
		}
		if d := time.Since(start); d != 63*time.Second {
			t.Errorf("three looks and pauses took %s, want 63s", d)
		}
		if n := hangs.Load(); n != 1 {
			t.Errorf("the part that hangs was asked %d times, want once", n)
		}
		if n := strings.Count(log.String(), "webhook health check fails"); n != 3 || !strings.Contains(log.String(), "a secret") {
			t.Errorf("%d lines, want one of each part, with the panic:\n%s", n, &log)
		}
		close(release)
		synctest.Wait()
		h.MaxFailures = 6
		if diff := cmp.Diff(want[1:2], look()); diff != "" {
			t.Errorf("after the limit was raised, and the part has answered (-want +got):\n%s", diff)
		}
	})
}

func TestAPartWithChecksOfOneNameIsLoggedWhenOneChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		h := health.New(worker(func(context.Context, check.Limits) []check.Result {
			return []check.Result{{Source: "shop", Name: "mails", Healthy: true}, {Source: "bank", Name: "mails", Says: "9 mails wait"}}
		}))
		h.Logger = slog.New(slog.NewTextHandler(&log, nil))
		for range 3 {
			h.Report()
			time.Sleep(time.Second)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "source=bank") {
			t.Errorf("three looks at the same log %d lines, want one:\n%s", n, &log)
		}
	})
}

func TestHealthOfNothingIsLiveness(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	health.New().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/livez", nil))
	if w.Code != http.StatusOK || w.Body.String() != `{"healthy":true,"checks":[]}` {
		t.Errorf("it is answered %d %s", w.Code, w.Body)
	}
}

func TestHealthHasTheChecksOfEachReceiver(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	var names []string
	for _, c := range s.NewHealth(s.First, s.Inbox).Report().Checks {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{
		"postgres", "deliveries", "refused", "handlers", "answer within", "workers", "clock", "failing", "parked", "standing",
		"postgres", "deliveries", "refused", "handlers", "workers", "clock", "failing", "parked", "standing",
	}, names); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
}
