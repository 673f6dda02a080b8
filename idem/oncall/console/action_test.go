package console_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/idem/oncall/console"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

// deaf is a broker that has no place for the message.
type deaf struct{}

func (deaf) Publish(context.Context, broker.Message) error {
	return idem.NoRetry(errors.New("no such topic"))
}

func TestMessagesOfAnOutboxCanBeRequeuedForItsWorkers(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	outbox := outbox.New(a.pool, "shop", deaf{})
	outbox.Logger, outbox.MaxAttempts = slog.New(slog.DiscardHandler), 1
	emit := func(tx pgx.Tx) error {
		return outbox.EmitTx(t.Context(), tx, broker.Message{ID: "m1", Type: "order.paid"})
	}
	if err := errors.Join(pgx.BeginFunc(t.Context(), a.pool, emit), outbox.Drain(t.Context())); err != nil {
		t.Fatal(err)
	}
	page := console.New(outbox)
	page.Access = a.page.Access
	page.WaitForAll()
	t.Cleanup(page.Close)
	a.handler = page
	a.wantState("shop", "m1", idem.StateParked)
	a.get("event?source=shop&id=m1").want(200, "Requeue…")
	a.confirm("confirm?source=shop&action=requeue&state=parked", "").want(303)
	a.wantState("shop", "m1", idem.StatePending)
}

func TestDryRunTellsWhatTheHandlerSays(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	var log bytes.Buffer
	a.page.Logger = slog.New(slog.NewTextHandler(&log, nil))
	a.confirm("confirm?action=dry-run"+oneEvent, "").want(303)
	a.get("trail?source=letters").want(200, "0 done, 1 failed, 0 without a handler; first failure: paid e1")
	if !strings.Contains(log.String(), "no such order: order-e1") {
		t.Errorf("the log does not have the handler's error: %s", log.String())
	}
	if kept := a.get("action?source=letters&id=1"); strings.Contains(kept.body, "no such order") {
		t.Error("the audit trail keeps the handler's error")
	}
	a.wantState("letters", "e1", idem.StateParked)
}

// A replay of many events is not waited for. When the page is closed it ends after
// the event that it is at, and says how far it came; another does the rest.
func TestLongReplayGoesOnInTheBackgroundUntilThePageIsClosed(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.page.Queues = map[string]gauge.Queues{"letters": &queues{all: []gauge.Queue{{ID: "q1", Enabled: true, Interrupted: true}}}}
	a.letters("e1", "e2", "e3")
	a.fix()
	second, goOn := make(chan struct{}), make(chan struct{})
	a.mu.Lock()
	a.during = func(l *letter) {
		if l.ID == "e2" {
			close(second)
			<-goOn
		}
	}
	a.mu.Unlock()
	a.page.WaitForNoAction()
	a.confirm("confirm?source=letters&action=replay", "").want(303)
	<-second
	a.page.WaitForAll()
	a.get("trail?source=letters").want(200, "it is running 1 of 3: 1 done, 0 failed, 0 without a handler")

	closed := make(chan struct{})
	go func() { a.page.Close(); close(closed) }()
	for answered := ""; !strings.Contains(answered, "shutting down: nothing was begun"); { // until Close has begun, which ends the last of these
		answered = a.post("release", url.Values{"source": {"letters"}, "queue": {"q1"}}).text()
	}
	select {
	case <-closed:
		t.Fatal("Close returned while a handler runs")
	default:
	}
	close(goOn)
	<-closed
	a.get("trail?source=letters").want(200, "2 done, 0 failed, 0 without a handler; failed: ", "context canceled")
	a.wantState("letters", "e2", idem.StateDone)
	a.wantState("letters", "e3", idem.StateParked)
	a.confirm("confirm?source=letters&action=replay", "").want(503, "shutting down: nothing was begun")
}

func TestNoMoreThanFourActionsAtOnce(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	goOn := make(chan struct{})
	q := &queues{all: []gauge.Queue{{ID: "q1", Enabled: true, Interrupted: true}}, wait: goOn}
	a.page.Queues = map[string]gauge.Queues{"letters": q}
	a.page.WaitForNoAction()
	answers := make(chan int)
	for range 4 {
		go func() { answers <- a.post("release", url.Values{"source": {"letters"}, "queue": {"q1"}}).status }()
	}
	for range 4 {
		if status := <-answers; status != 303 {
			t.Errorf("a release is answered %d", status)
		}
	}
	a.post("release", url.Values{"source": {"letters"}, "queue": {"q1"}}).want(503, "4 actions are running")
	close(goOn)
}
