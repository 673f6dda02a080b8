package console_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/console"
)

const oneEvent = "&source=letters&state=parked&account=&id=e1&one=1"

func TestActionsOnOneEvent(t *testing.T) {
	t.Parallel()
	for action, row := range map[string]struct {
		fixed bool
		want  idem.State
		trail string
	}{
		"replay":  {true, idem.StateDone, "ana replay states parked; accounts ; ids e1 because 1 1 done, 0 failed"},
		"dry-run": {true, idem.StateParked, "ana dry replay states parked; accounts ; ids e1 because 1 1 done, 0 failed, 0 without a handler"},
		"requeue": {true, idem.StatePending, "ana requeue states parked; accounts ; ids e1 because 1 1 requeued"},
		"discard": {false, idem.StateDiscarded, "ana discard states parked; accounts ; ids e1 because 1 1 discarded"},
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			a.letters("e1", "e2")
			if row.fixed {
				a.fix()
			}
			if got := a.confirm("confirm?action="+action+oneEvent, "because"); got.status != 303 || got.header.Get("Location") != "trail?source=letters" {
				t.Errorf("the answer is %d to %q: %s", got.status, got.header.Get("Location"), got.text())
			}
			a.get("trail?source=letters").want(200, row.trail)
			a.wantState("letters", "e1", row.want)
			a.wantState("letters", "e2", idem.StateParked)
		})
	}
}

func TestActionsOnAllThatAFilterChooses(t *testing.T) {
	t.Parallel()
	for action, row := range map[string]struct {
		want  idem.State
		trail string
	}{
		"replay":  {idem.StateDone, "3 3 done, 0 failed, 0 without a handler"},
		"dry-run": {idem.StateParked, "3 3 done, 0 failed, 0 without a handler"},
		"requeue": {idem.StatePending, "3 3 requeued"},
		"discard": {idem.StateDiscarded, "3 3 discarded"},
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			a.letters("e1", "e2", "e3")
			a.accept(a.inbox.Accept, idem.Event{ID: "e4", Type: "sent", Payload: body("e4")})
			a.fix()
			a.confirm("confirm?source=letters&type=paid&action="+action, "because").want(303)
			trail := a.get("trail?source=letters")
			trail.want(200, "states pending retrying unhandled parked; types paid", row.trail)
			for _, id := range []string{"e1", "e2", "e3"} {
				a.wantState("letters", id, row.want)
			}
			a.wantState("letters", "e4", idem.StatePending)
			if action == "replay" {
				a.get("action?source=letters&id=1").want(200, "3 events were chosen", "e1", "e2", "e3", "because")
			}
		})
	}
}

func TestProcessorHasNoWorkersToRequeueFor(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.accept(a.processor.Accept, idem.Event{ID: "n1", Type: "paid", Payload: body("n1")})
	page := a.get("event?source=notes&id=n1")
	page.want(200, "Replay…")
	page.without("Requeue")
	a.get("confirm?source=notes&action=requeue").want(400)
	a.fix()
	a.confirm("confirm?source=notes&action=replay", "").want(303)
	a.wantState("notes", "n1", idem.StateDone)
}

// deaf is a broker that takes nothing.
type deaf struct{}

func (deaf) Publish(context.Context, idem.Message) error { return errors.New("the broker is full") }

func TestMessagesOfAnOutboxCanBeRequeuedForItsWorkers(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	outbox := idem.NewOutbox(a.pool, "shop", deaf{})
	outbox.Logger, outbox.MaxAttempts = slog.New(slog.DiscardHandler), 1
	emit := func(tx pgx.Tx) error {
		return outbox.EmitTx(t.Context(), tx, idem.Message{ID: "m1", Type: "order.paid"})
	}
	if err := errors.Join(pgx.BeginFunc(t.Context(), a.pool, emit), outbox.Drain(t.Context())); err != nil {
		t.Fatal(err)
	}
	page := console.New(outbox)
	page.Access = a.page.Access
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
	a.confirm("confirm?action=dry-run"+oneEvent, "").want(303)
	a.get("trail?source=letters").want(200, "0 done, 1 failed, 0 without a handler; first failure: paid e1: no such order: order-e1")
	a.wantState("letters", "e1", idem.StateParked)
}

func TestDiscardNeedsAReason(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	for _, reason := range []string{"", " \n "} {
		a.confirm("confirm?action=discard"+oneEvent, reason).want(400, "Say why: nothing was done")
	}
	a.wantState("letters", "e1", idem.StateParked)
}

func TestCountThatHasChangedIsSaid(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	form := a.get("confirm?source=letters&action=replay").form("act")
	a.letters("e2")
	a.fix()
	form.Set("reason", "fixed")
	a.post("act", form).want(303)
	a.get("trail?source=letters").want(200, "fixed (1 events when it was confirmed, 2 when it began) 2 2 done")

	a.post("act", form).want(409, "chooses no event any more: nothing was done")
}

// A replay of many events is not waited for. When the page is closed it ends after
// the event that it is at, and says how far it came; another does the rest.
func TestLongReplayGoesOnInTheBackgroundUntilThePageIsClosed(t *testing.T) {
	t.Parallel()
	a := newApp(t)
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
	a.confirm("confirm?source=letters&action=replay", "").want(303)
	<-second
	a.get("trail?source=letters").want(200, "running, or its process died 1 of 3: 1 done, 0 failed, 0 without a handler")

	closed := make(chan struct{})
	go func() { a.page.Close(); close(closed) }()
	for a.post("release", url.Values{"source": {"letters"}}).status != 404 { // the page still answers
		t.Fatal("a page that is being closed does not answer")
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
	q := &queues{all: []idem.Queue{{ID: "q1", Enabled: true, Interrupted: true}}, wait: goOn}
	a.page.Queues = map[string]idem.Queues{"letters": q}
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

// Redact is the application's: what it does wrong must leave nothing open in the
// trail.
func TestRedactThatPanicsShowsNothing(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	a.page.Redact = func(string, []byte) []byte { panic("no such field") }
	page := a.post("reveal", url.Values{"source": {"letters"}, "id": {"e1"}})
	page.want(500)
	page.without("123.456.789-09")
	a.get("trail?source=letters").without("its process died")
}

// What is discarded is gone: nobody discards what they were not asked about.
func TestDiscardOfMoreThanWasConfirmedIsRefused(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	form := a.get("confirm?source=letters&action=discard").form("act")
	a.letters("e2")
	form.Set("reason", "a test")
	a.post("act", form).want(409, "The filter chooses 2 events now, not 1: nothing was done.")
	for _, id := range []string{"e1", "e2"} {
		a.wantState("letters", id, idem.StateParked)
	}
	a.confirm("confirm?source=letters&action=discard", "a test").want(303)
	a.wantState("letters", "e2", idem.StateDiscarded)
}
