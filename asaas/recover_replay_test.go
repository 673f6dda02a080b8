package asaas_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
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
	for p, err := range asaas.Recover(t.Context(), s.asaas.Client(), webhook, asaas.DryRunProbe(webhookToken), inbox) {
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, p.String())
	}
	want := []string{
		"nothing is held up at Asaas, and nothing was changed there", "the probe passed", "replayed: 1 done, 0 failed again, 0 without handler",
		"nothing is owed of what was delivered: no event is parked, and none waits for another delivery",
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
	processor := idem.NewProcessor(s.pool, events)
	processor.Logger, processor.PassParked = slog.New(slog.DiscardHandler), true
	webhook := s.asaas.AddWebhook(asaastest.Webhook{Handler: processor, Token: webhookToken, Events: []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentRefunded}})
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(2990))
	charge.Created()
	received, refunded := asaas.Identify(charge.Received()), asaas.Identify(charge.Refunded())
	s.broken.Store(true)
	for _, e := range []idem.Event{received, refunded} {
		if _, err := processor.Accept(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	s.broken.Store(false)
	want := "replayed: 1 done, 0 failed again, 0 without handler; " + received.ID + " (PAYMENT_RECEIVED) ran behind " +
		refunded.ID + " (PAYMENT_REFUNDED), which was done before it"
	var said []string
	for p, err := range asaas.Recover(t.Context(), s.asaas.Client(), webhook, asaas.DryRunProbe(webhookToken), processor) {
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
	s.sell(t, 8)
	s.asaas.Advance(24 * time.Hour)
	s.broken.Store(false)
	client := s.asaas.Client()
	var said []string
	var failed error
	for p, err := range asaas.Recover(t.Context(), client, s.webhook, asaas.DryRunProbe(webhookToken), s.processor) {
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
