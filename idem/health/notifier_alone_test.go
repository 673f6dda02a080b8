package health_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
)

// inABubble runs a Notifier without a database in the time of a synctest. fails is what health says of the orders.
func inABubble(t *testing.T, fails func() bool, notify func(context.Context, check.Result) error) (log *strings.Builder) {
	log = new(strings.Builder)
	h := health.New(worker(func(context.Context, check.Limits) []check.Result {
		if fails() {
			return []check.Result{orders}
		}
		return []check.Result{sound}
	}))
	h.Logger = nil
	n := &health.Notifier{Health: h, Notify: notify, Logger: slog.New(slog.NewTextHandler(log, nil))}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return log
}

func TestAProcessWithoutADatabaseTellsByTheSameRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		var told []string
		start := time.Now()
		log := inABubble(t, failing.Load, func(_ context.Context, r check.Result) error {
			told = append(told, fmt.Sprint(time.Since(start).Round(time.Minute), " ", r.Healthy, " ", r))
			return nil
		})
		time.Sleep(9*time.Minute + time.Second)
		failing.Store(true)
		time.Sleep(25 * time.Hour)
		failing.Store(false)
		time.Sleep(time.Hour)
		want := []string{"10m0s false 9 orders wait", "24h10m0s false 9 orders wait", "25h14m0s true none waits"}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("(-want +told):\n%s", diff)
		}
		if log.Len() > 0 {
			t.Errorf("the log is\n%s", log)
		}
	})
}

func TestANotifyThatHangsIsCalledOnceUntilItReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, told := make(chan struct{}), 0
		start := time.Now()
		log := inABubble(t, func() bool { return true }, func(ctx context.Context, _ check.Result) error {
			deadline, ok := ctx.Deadline()
			if told++; !ok || time.Until(deadline) > time.Minute {
				t.Errorf("the context has the deadline %s", deadline)
			}
			if told == 1 {
				<-release
			}
			return nil
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		if told != 1 || strings.Count(log.String(), "function Notify has not returned") != 1 {
			t.Errorf("it was called %d times, and the log is\n%s", told, log)
		}
		close(release)
		time.Sleep(time.Minute)
		synctest.Wait()
		if told != 2 {
			t.Errorf("after it returned it was called %d times in %s", told, time.Since(start))
		}
	})
}

func TestANotifierEndsWhileHealthTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var log *strings.Builder
		start := time.Now()
		t.Cleanup(func() { // once it has ended
			if d := time.Since(start); d > 2*time.Second || log.Len() > 0 {
				t.Errorf("it has ended after %s, and the log is\n%s", d, log)
			}
			close(release)
		})
		log = inABubble(t, func() bool { <-release; return true }, func(context.Context, check.Result) error {
			t.Error("something is told")
			return nil
		})
		time.Sleep(time.Second)
	})
}

func TestTheAddressOfAChatIsNotLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := inABubble(t, func() bool { return true }, func(context.Context, check.Result) error {
			return fmt.Errorf("the chat: %w", &url.Error{Op: "Post", URL: "https://chat.example/a-secret", Err: errors.New("no such host")})
		})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if text := log.String(); !strings.Contains(text, "no such host") || strings.Contains(text, "secret") {
			t.Errorf("the log is\n%s", text)
		}
	})
}

func TestANotifierThatCanTellNobodyDoesNotStart(t *testing.T) {
	t.Parallel()
	notify := func(context.Context, check.Result) error { return nil }
	for name, n := range map[string]*health.Notifier{"without Health": {Notify: notify}, "without Notify": {Health: health.New()}} {
		if err := n.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "needs a Health and a Notify") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
