package asaas_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
)

// outage is a fake Asaas with a webhook whose receiver can be broken.
type outage struct {
	fake   *asaastest.Fake
	client *asaas.Client
	id     string
	broken atomic.Bool
	dryRun string // its answer
}

// newOutage has three events fail for a while: an hour is a penalty, a day stops
// the queue.
func newOutage(t *testing.T, d time.Duration) *outage {
	t.Helper()
	o := &outage{fake: asaastest.New(), dryRun: `{"received":false,"dry_run":"done"}`}
	t.Cleanup(o.fake.Close)
	o.id = o.fake.AddWebhook(asaastest.Webhook{Token: webhookToken, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(idem.DryRunHeader) != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, o.dryRun)
		} else if o.broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})})
	var err error
	o.client, err = asaas.NewClient(asaas.Sandbox, o.fake.APIKey)
	if err != nil {
		t.Fatal(err)
	}
	o.client.Transport, o.client.Receiver = o.fake.Transport(), o.fake.Client().Receiver
	o.broken.Store(true)
	for range 3 {
		o.fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	}
	o.fake.Advance(d)
	return o
}

// changes are what was done to the queue through the API.
func (o *outage) changes() (out []asaastest.Kind) {
	for _, e := range o.fake.Timeline() {
		if e.Kind == asaastest.Resumed || e.Kind == asaastest.BackoffRemoved {
			out = append(out, e.Kind)
		}
	}
	return out
}

// recoverWith runs Recover, and Asaas's clock with it: as much passes there as
// between two looks. It returns the steps, with the count of each.
func (o *outage) recoverWith(ctx context.Context) (steps []string, err error) {
	for p, err := range asaas.Recover(ctx, o.client, o.id, webhookToken, nil) {
		if err != nil {
			return steps, err
		}
		steps = append(steps, fmt.Sprintf("%s %d", p.Step, p.PenalizedRequests))
		o.fake.Advance(o.client.Poll)
	}
	return steps, nil
}

func TestAPenaltyIsRemovedOnceTheWayIsProved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t, time.Hour)
		o.broken.Store(false)
		start := time.Now()
		got, err := o.recoverWith(t.Context())
		want := []string{"probed 7", "penalty removed 7", "watching 0", "watching 0", "watching 0", "done 0"}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff([]asaastest.Kind{asaastest.BackoffRemoved}, o.changes()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if pending, took := o.fake.Webhook(o.id).Pending, time.Since(start); pending != 0 || took != 3*o.client.Poll {
			t.Errorf("%d events wait after %s", pending, took)
		}
	})
}

func TestAStoppedQueueIsResumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t, 24*time.Hour)
		o.broken.Store(false)
		got, err := o.recoverWith(t.Context())
		want := []string{"probed 15", "resumed 15", "watching 0", "watching 0", "watching 0", "done 0"}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff([]asaastest.Kind{asaastest.Resumed}, o.changes()); diff != "" || o.fake.Webhook(o.id).Pending != 0 {
			t.Errorf("%d events wait (-want +got):\n%s", o.fake.Webhook(o.id).Pending, diff)
		}
	})
}

func TestNothingIsChangedUnlessTheWayIsProved(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{time.Hour, 24 * time.Hour} {
		o := newOutage(t, d)
		o.dryRun = "away"
		got, err := o.recoverWith(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "asaas: Recover("+o.id+"): nothing was changed: the way to ") || got != nil || o.changes() != nil {
			t.Errorf("after %s: steps %v, changes %v, error %v", d, got, o.changes(), err)
		}
	}
}

func TestWhatIsNotHeldUpIsLeftAlone(t *testing.T) {
	t.Parallel()
	o := newOutage(t, 0)
	o.broken.Store(false)
	o.fake.RemoveBackoff(o.id) // somebody did it before
	o.fake.Settle()
	before := o.changes()
	o.dryRun = "it is not asked"
	got, err := o.recoverWith(t.Context())
	if diff := cmp.Diff([]string{"not needed 0"}, got); err != nil || diff != "" || len(o.changes()) != len(before) {
		t.Errorf("%v, changes %v (-want +got):\n%s", err, o.changes(), diff)
	}
}

func TestNewFailuresEndARecovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t, time.Hour)
		got, err := o.recoverWith(t.Context()) // and it is still broken
		if err == nil || !strings.Contains(err.Error(), "the penalty was removed: there are new failures, Asaas counts 2 after 1: ") {
			t.Errorf("after %v: %v", got, err)
		}
		if changes := o.changes(); len(changes) != 1 {
			t.Errorf("it was tried again: %v", changes)
		}
	})
}

// looked is the answer of a look.
func looked(interrupted bool, penalized int) scriptedAnswer {
	return scriptedAnswer{status: 200, body: fmt.Sprintf(`{"id":"a","url":"https://shop.example/webhooks/asaas","enabled":true,"interrupted":%t,"penalizedRequestsCount":%d}`, interrupted, penalized)}
}

// steps of a recovery whose API answers so.
func stepsOf(ctx context.Context, client *asaas.Client) (out []string, err error) {
	for p, err := range asaas.Recover(ctx, client, "a", webhookToken, nil) {
		if err != nil {
			return out, err
		}
		out = append(out, fmt.Sprintf("%s %d", p.Step, p.PenalizedRequests))
	}
	return out, nil
}

func TestARecoveryEndsAsItsQueueDoes(t *testing.T) {
	t.Parallel()
	removed, resumed := scriptedAnswer{status: 204}, looked(false, 15)
	disabled := scriptedAnswer{status: 200, body: `{"id":"a","enabled":false,"interrupted":true,"penalizedRequestsCount":15}`}
	for _, tt := range []struct {
		reason  string
		answers []scriptedAnswer // the last one from then on
		steps   []string
		says    string
	}{
		{
			"the count falls slowly",
			[]scriptedAnswer{looked(false, 9), removed, looked(false, 9), looked(false, 9), looked(false, 4), looked(false, 1), looked(false, 0)},
			[]string{"probed 9", "penalty removed 9", "watching 9", "watching 9", "watching 4", "watching 1", "watching 0", "watching 0", "watching 0", "done 0"},
			"",
		},
		{
			"somebody stopped the queue, and nothing had failed",
			[]scriptedAnswer{looked(true, 0), looked(false, 0), looked(false, 0)},
			[]string{"probed 0", "resumed 0", "watching 0", "watching 0", "watching 0", "done 0"},
			"",
		},
		{
			"a failure comes after the last one was delivered",
			[]scriptedAnswer{looked(false, 2), removed, looked(false, 0), looked(false, 0), looked(false, 1)},
			[]string{"probed 2", "penalty removed 2", "watching 0", "watching 0"},
			"the penalty was removed: there are new failures, Asaas counts 1 after 0",
		},
		{
			"the count rises while it falls",
			[]scriptedAnswer{looked(true, 15), resumed, looked(false, 6), looked(false, 7)},
			[]string{"probed 15", "resumed 15", "watching 6"},
			"the queue was resumed: there are new failures, Asaas counts 7 after 6",
		},
		{
			"the queue is stopped again",
			[]scriptedAnswer{looked(true, 15), resumed, looked(false, 6), looked(true, 6)},
			[]string{"probed 15", "resumed 15", "watching 6"},
			"the queue was resumed: the queue is stopped again",
		},
		{
			"Asaas says that it is resumed, and does not do it",
			[]scriptedAnswer{looked(true, 15), looked(true, 15)},
			[]string{"probed 15"},
			"nothing was changed: Resume(a): the queue is still stopped",
		},
		{"it is disabled", []scriptedAnswer{disabled}, nil, "nothing was changed: the webhook is disabled: Asaas makes no events for it"},
		{
			"somebody disables it",
			[]scriptedAnswer{looked(false, 2), removed, disabled},
			[]string{"probed 2", "penalty removed 2"},
			"the penalty was removed: the webhook is disabled",
		},
		{"the count is not told", []scriptedAnswer{{status: 200, body: `{"id":"a","interrupted":false}`}}, nil, "see the webhook at Asaas, and what answers"},
		{"the state is not told", []scriptedAnswer{{status: 200, body: `{"id":"a","penalizedRequestsCount":0}`}}, nil, "see the webhook at Asaas, and what answers"},
		{"there is no such webhook", []scriptedAnswer{{status: 404}}, nil, "nothing was changed: Webhook(a): it was answered with 404"},
		{
			"the API key may only read",
			[]scriptedAnswer{looked(false, 2), {status: 403}},
			[]string{"probed 2"},
			"nothing was changed: RemoveBackoff(a): it was answered with 403: the API key has no permission",
		},
		{
			"Asaas is in trouble when it is to remove the penalty",
			[]scriptedAnswer{looked(false, 2), {status: 500}},
			[]string{"probed 2"},
			"it is not known whether the penalty was removed: RemoveBackoff(a): it was answered with 500",
		},
		{
			"Asaas cannot be asked any more",
			[]scriptedAnswer{looked(false, 2), removed, {status: 502, body: "<html>"}},
			[]string{"probed 2", "penalty removed 2"},
			"the penalty was removed: Webhook(a): it was answered with 502, the answer is HTML",
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, _ := clientOn(t, tt.answers...)
				got, err := stepsOf(t.Context(), client)
				if diff := cmp.Diff(tt.steps, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got the error %v, want one that says %q", err, tt.says)
				}
				if err != nil && strings.Count(err.Error(), "asaas: ") != 1 {
					t.Errorf("the package is named more than once, or not: %v", err)
				}
			})
		})
	}
}

func TestAChangeIsMadeOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, s := clientOn(t, looked(false, 2), scriptedAnswer{status: 500})
		if _, err := stepsOf(t.Context(), client); err == nil || s.sent.Load() != 2 {
			t.Errorf("%d requests, %v", s.sent.Load(), err)
		}
		_, err := stepsOf(t.Context(), client)
		if e, ok := errors.AsType[*asaas.APIError](err); !ok || e.Status != 500 { // asks Asaas first
			t.Errorf("got the error %v", err)
		}
		again, _ := clientOn(t, looked(false, 2), scriptedAnswer{status: 204}, looked(false, 3))
		if _, err := stepsOf(t.Context(), again); err == nil {
			t.Error("new failures are no error")
		}
	})
}

func TestARecoveryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for reason, tt := range map[string]struct {
		answers []scriptedAnswer
		after   time.Duration
		says    string
	}{
		"before it began":           {[]scriptedAnswer{looked(false, 9)}, 0, "nothing was changed: it was interrupted, look again: "},
		"while it waits":            {[]scriptedAnswer{looked(false, 9), {status: 204}, looked(false, 8)}, 12 * time.Second, "the penalty was removed: it was interrupted with 8 failures counted, look again: "},
		"while Asaas wants a pause": {[]scriptedAnswer{{status: 429, reset: "20"}}, time.Second, "nothing was changed: it was interrupted, look again: "},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, _ := clientOn(t, tt.answers...)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(tt.after, func() { cancel(errors.New("the deploy window is over")) })
				if tt.after == 0 {
					<-ctx.Done()
				}
				start := time.Now()
				_, err := stepsOf(ctx, client)
				if err == nil || !strings.HasSuffix(err.Error(), "asaas: Recover(a): "+tt.says+"the deploy window is over") || time.Since(start) != tt.after {
					t.Errorf("after %s: %v", time.Since(start), err)
				}
			})
		})
	}
}

func TestLeavingTheLoopEndsARecovery(t *testing.T) {
	t.Parallel()
	for i, requests := range []int64{1, 2, 3, 4} { // requests until that step
		client, s := clientOn(t, looked(false, 9), scriptedAnswer{status: 204}, looked(false, 8))
		client.Poll = 1
		steps := 0
		for range asaas.Recover(t.Context(), client, "a", webhookToken, nil) {
			if steps++; steps > i {
				break
			}
		}
		if s.sent.Load() != requests {
			t.Errorf("left at step %d: %d requests, want %d", i, s.sent.Load(), requests)
		}
	}
}

func TestARecoveryThatCannotBeginSaysWhatToDo(t *testing.T) {
	t.Parallel()
	client, s := clientOn(t, looked(false, 9))
	client.Poll = 0
	if _, err := stepsOf(t.Context(), client); err == nil || !strings.Contains(err.Error(), "Poll is not positive") {
		t.Errorf("got the error %v", err)
	}
	if s.sent.Load() != 0 {
		t.Errorf("%d requests", s.sent.Load())
	}
}

func TestNoKeyIsInTheErrorsOfARecovery(t *testing.T) {
	t.Parallel()
	client, _ := clientOn(t, looked(false, 9))
	for _, err := range asaas.Recover(t.Context(), client, apiKey, "", nil) {
		if strings.Contains(err.Error(), apiKey) {
			t.Errorf("it has the key: %v", err)
		}
	}
}
