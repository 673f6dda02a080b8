package asaas_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestAnInboxIsReplayed(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	events := asaas.NewDispatcher(webhookToken)
	events.OnPaymentReceived(func(ctx context.Context, _ pgx.Tx, _ *asaas.PaymentEvent) error {
		if s.broken.Load() {
			return idem.NoRetry(errBroken)
		}
		return nil
	})
	inbox := idem.NewInbox(s.pool, events)
	inbox.Logger = slog.New(slog.DiscardHandler)
	parked := make(chan struct{})
	inbox.Observe = func(_ context.Context, o idem.Observation) {
		if o.Outcome == idem.Parked {
			close(parked)
		}
	}
	webhook := s.asaas.AddWebhook(asaastest.Webhook{Handler: inbox, Token: webhookToken, Events: []asaas.EventType{asaas.EventPaymentReceived}})
	s.broken.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- inbox.Run(ctx) }()
	if _, err := inbox.Accept(t.Context(), asaas.Identify(asaastest.Event(asaas.EventPaymentReceived))); err != nil {
		t.Fatal(err)
	}
	<-parked
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.broken.Store(false)
	var said []string
	for p, err := range asaas.Recover(t.Context(), s.asaas.Client(), webhook, webhookToken, inbox) {
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(p.String(), " is PAYMENT_RECEIVED evt_")
		said = append(said, line)
	}
	want := []string{
		"nothing is held up at Asaas, and nothing was changed there", "the way is proved, handlers were not tried: the oldest event that failed", "replayed: 1 done, 0 failed again, 0 without handler",
		"nothing is owed of what was delivered: no event is parked, fails, or waits for another one",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The payment was broken when its refund was booked: a person must see which came last.
func TestRecoverNamesWhatItReplaysBehindALaterEvent(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	events := asaas.NewDispatcher(webhookToken)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error {
		if s.broken.Load() {
			return idem.NoRetry(errBroken)
		}
		return nil
	})
	events.OnPaymentRefunded(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
	inbox := idem.NewInbox(s.pool, events)
	inbox.Logger, inbox.PassParked = slog.New(slog.DiscardHandler), true
	webhook := s.asaas.AddWebhook(asaastest.Webhook{Handler: inbox, Token: webhookToken, Events: []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentRefunded}})
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(2990))
	charge.Created()
	received, refunded := asaas.Identify(charge.Received()), asaas.Identify(charge.Refunded())
	s.broken.Store(true)
	for _, e := range []idem.Event{received, refunded} {
		if _, err := inbox.Accept(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if err := inbox.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.broken.Store(false)
	want := "replayed: 1 done, 0 failed again, 0 without handler; " + received.ID + " (PAYMENT_RECEIVED) ran behind " +
		refunded.ID + " (PAYMENT_REFUNDED), which was done before it"
	var said []string
	for p, err := range asaas.Recover(t.Context(), s.asaas.Client(), webhook, webhookToken, inbox) {
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, p.String())
	}
	if !slices.Contains(said, want) {
		t.Errorf("it says %q, want %q", said, want)
	}
}

// Asaas's API breaks down after the queue was resumed: what is parked is in the
// application's own database.
func TestWhatIsParkedIsReplayedThoughWatchingFails(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.broken.Store(true)
	s.park(t, 8)
	s.sell(t, 1)
	s.broken.Store(false)
	client := s.asaas.Client()
	var said []string
	var failed error
	for p, err := range asaas.Recover(t.Context(), client, s.webhook, webhookToken, s.first) {
		if failed = err; err != nil {
			break
		}
		if said = append(said, string(p.Step)); p.Step == asaas.RecoveryPenaltyRemoved {
			s.asaas.InjectAPI(asaastest.APIStatus(500), asaastest.APIStatus(500), asaastest.APIStatus(500))
		}
	}
	if diff := cmp.Diff([]string{"probed", "penalty removed", "replayed", "owed"}, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, ok := errors.AsType[*asaas.APIError](failed); !ok || !strings.Contains(failed.Error(), "the penalty was removed, replayed: ") {
		t.Errorf("it ends with %v", failed)
	}
	if n := s.unpaid(t); n != 0 {
		t.Errorf("%d orders are not paid once", n)
	}
}

func TestACountThatDoesNotFallEndsARecovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, _ := clientOn(t, looked(false, 9), scriptedAnswer{status: 204}, looked(false, 8), looked(false, 8))
		start := time.Now()
		_, err := stepsOf(t.Context(), client)
		if err == nil || !strings.Contains(err.Error(), "the count of failures is still 8, no less for 10m0s") || time.Since(start) != 10*time.Minute+client.Poll {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

// arrivals is an application of which only the last event is known.
type arrivals struct {
	asaas.EventStore
	last  time.Time // zero if none ever came
	asked int
	fails int // the question that fails, counted from 1; 0 is none
}

func (a *arrivals) List(context.Context, idem.Filter) iter.Seq2[idem.StoredEvent, error] {
	return func(func(idem.StoredEvent, error) bool) {}
}

func (a *arrivals) SilentSince(_ context.Context, d time.Duration) (silent time.Time, _ error) {
	if a.asked++; a.asked == a.fails {
		return silent, errors.New("the database is away")
	}
	if time.Since(a.last) > d {
		silent = a.last
	}
	return silent, nil
}

func TestARecoveryIsConfirmedByWhatIsDelivered(t *testing.T) {
	t.Parallel()
	history := looked(false, 9)
	for _, tt := range []struct {
		reason  string
		arrived time.Duration // after the begin; 0 is never
		says    string        // of the error
		after   time.Duration
		fails   int // of the questions to the inbox, the first of which comes before the release
	}{
		{"events arrive, and the count is a history", 30 * time.Second, "", time.Minute, 0},
		{"events arrive late", 3*time.Minute + time.Second, "", 4 * time.Minute, 0},
		{"events arrive, and the inbox cannot be asked at first", 30 * time.Second, "", 2 * time.Minute, 2},
		{"events arrive, and the time of the last cannot be read at first", 30 * time.Second, "", 2 * time.Minute, 3},
		{"the last event is of before the release", -time.Hour, "still 9, no less for 10m0s", 10 * time.Minute, 0},
		{"no event has ever come", 0, "still 9, no less for 10m0s", 10 * time.Minute, 0},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, _ := clientOn(t, history, scriptedAnswer{status: 204}, history)
				start := time.Now()
				store := &arrivals{fails: tt.fails}
				if tt.arrived < 0 {
					store.last = start.Add(tt.arrived)
				}
				if tt.arrived > 0 {
					time.AfterFunc(tt.arrived, func() { store.last = time.Now() })
				}
				var last asaas.RecoveryProgress
				var failed error
				for p, err := range asaas.Recover(t.Context(), client, "a", webhookToken, store) {
					if failed = err; err == nil && p.Step != asaas.RecoveryOwed {
						last = p
					}
				}
				if took := time.Since(start); took != tt.after {
					t.Errorf("it took %s", took)
				}
				if tt.says != "" && (failed == nil || !strings.Contains(failed.Error(), tt.says)) {
					t.Errorf("it ends with %v, %v", last, failed)
				}
				if tt.says == "" && (failed != nil || last.Step != asaas.RecoveryDone || !last.Delivered.Equal(store.last) ||
					!strings.Contains(last.String(), "from this webhook or another one") || !strings.Contains(last.String(), "still counts 9")) {
					t.Errorf("it ends with %v, %v", last, failed)
				}
			})
		})
	}
}

// Nobody knows what resuming does to the penalty.
func TestAPenaltyThatOutlivesAResumeIsRemovedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		still := looked(false, 15)
		client, _ := clientOn(t, looked(true, 15), still, still, still, still, scriptedAnswer{status: 204}, still, looked(false, 0))
		client.Poll = 20 * time.Second
		got, err := stepsOf(t.Context(), client)
		want := []string{"probed 15", "resumed 15", "watching 15", "watching 15", "watching 15", "penalty removed 15", "watching 15", "watching 0", "watching 0", "watching 0", "done 0"}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		client, s := clientOn(t, looked(true, 15), still, still, still, still, scriptedAnswer{status: 204}, still)
		client.Poll = 20 * time.Second
		got, err = stepsOf(t.Context(), client)
		says := "the queue was resumed, the penalty was removed: the count of failures is still 15, no less for 10m0s: see in the webhook's log at Asaas whether it delivers; " +
			"if it does, all is well, and the count goes in time; if not, remove the penalty once more, and then ask Asaas"
		if err == nil || !strings.HasSuffix(err.Error(), says) || s.sent.Load() != 1+1+3+1+30 {
			t.Errorf("%d requests, %v: %v", s.sent.Load(), got, err)
		}
	})
}

func TestAPauseThatAsaasAsksForDoesNotEndARecovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := scriptedAnswer{status: 503, after: "300"} // longer than a call may take
		client, _ := clientOn(t, looked(false, 2), scriptedAnswer{status: 204}, busy, looked(false, 0))
		got, err := stepsOf(t.Context(), client)
		want := []string{"probed 2", "penalty removed 2", "watching 0", "watching 0", "watching 0", "done 0"}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func TestRecoverSaysWhatTheWebhookDoesNotBring(t *testing.T) {
	t.Parallel()
	pool := testkit.Open(t)
	events := asaas.NewDispatcher(webhookToken)
	nothing := func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil }
	events.OnPaymentReceived(nothing)
	events.OnPaymentRefunded(nothing)
	both := []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentRefunded}
	for _, c := range []struct {
		reason  string
		webhook asaastest.Webhook
		store   asaas.EventStore
		want    []string
	}{
		{"all is well", asaastest.Webhook{Events: both}, idem.NewInbox(pool, events), nil},
		{"a type that is handled", asaastest.Webhook{Events: both[:1]}, idem.NewInbox(pool, events), []string{"PAYMENT_REFUNDED is handled and not subscribed to: it never comes"}},
		{"the order, which an inbox keeps", asaastest.Webhook{Events: both, SendType: asaastest.NonSequentially}, idem.NewInbox(pool, events), nil},
	} {
		fake := asaastest.New()
		t.Cleanup(fake.Close)
		c.webhook.URL, c.webhook.Token = "https://shop.example/webhooks/asaas", webhookToken
		id := fake.AddWebhook(c.webhook)
		var got []string
		for p, err := range asaas.Recover(t.Context(), fake.Client(), id, webhookToken, c.store) {
			if err != nil {
				t.Fatal(err)
			}
			if p.Step == asaas.RecoveryMisses {
				got = p.Misses
				if says := p.String(); !strings.Contains(says, "asaas-queue plan") || !strings.Contains(says, got[0]) {
					t.Errorf("%s: it says %s", c.reason, says)
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}
