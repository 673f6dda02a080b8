package console_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/idem/oncall/console"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

const oneEvent = "&source=letters&state=parked&account=&id=e1&one=1"

func TestActionsOnOneEvent(t *testing.T) {
	t.Parallel()
	for action, row := range map[string]struct {
		fixed bool
		want  idem.State
		trail string
	}{
		"replay":  {true, idem.StateDone, "ana replay states parked; accounts ; ids e1; 1 by row key because 1 1 done, 0 failed"},
		"dry-run": {true, idem.StateParked, "ana dry replay states parked; accounts ; ids e1; 1 by row key because 1 1 done, 0 failed, 0 without a handler"},
		"requeue": {true, idem.StatePending, "ana requeue states parked; accounts ; ids e1; 1 by row key because 1 1 requeued"},
		"discard": {false, idem.StateDiscarded, "ana discard states parked; accounts ; ids e1; 1 by row key because 1 1 discarded"},
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
			trail.want(200, "states pending unhandled parked; types paid; 3 by row key", row.trail)
			for _, id := range []string{"e1", "e2", "e3"} {
				a.wantState("letters", id, row.want)
			}
			a.wantState("letters", "e4", idem.StatePending)
			if action == "replay" {
				a.get("action?source=letters&id=1").want(200, "3 events", "e1", "e2", "e3", "because")
			}
		})
	}
}

func TestRequeueingForWorkersThatAreNotAliveSaysWhatToDo(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	if _, err := a.pool.Exec(t.Context(), `delete from idem_workers`); err != nil { // those that have just parked it
		t.Fatal(err)
	}
	form := a.get("confirm?action=requeue" + oneEvent).form("act")
	a.post("act", form).want(409, "No workers of this source are alive", "nothing was done. Replay the events, or start the program")
	a.wantState("letters", "e1", idem.StateParked)
	a.get("trail?source=letters").want(200, "Nobody has done anything")
}

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

func TestDiscardNeedsAReason(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	for _, reason := range []string{"", " \n "} {
		a.confirm("confirm?action=discard"+oneEvent, reason).want(400, "Say why: nothing was done")
	}
	a.wantState("letters", "e1", idem.StateParked)
}

func TestListThatHasChangedIsSaid(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	form := a.get("confirm?source=letters&action=replay").form("act")
	a.letters("e2")
	a.fix()
	form.Set("reason", "fixed")
	a.post("act", form).want(303)
	a.get("trail?source=letters").want(200, "1 by row key fixed; of 1 events that were shown, 0 had left the list, and 1 came since: those are left alone 1 1 done")
	a.wantState("letters", "e2", idem.StateParked)

	a.post("act", form).want(409, "none of the events any more that you were shown: nothing was done")
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

// A list of seven that became seven others, a payment among them, is another list.
func TestActionLeavesWhatWasNotShown(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"discard", "requeue", "replay", "dry-run"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			a.letters("n1", "n2", "n3", "n4", "n5", "n6", "n7")
			a.workersElsewhere()
			form := a.get("confirm?source=letters&state=parked&action=" + action).form("act")
			form.Set("reason", "noise")
			a.fix()
			if _, err := a.inbox.Replay(t.Context(), idem.Filter{IDs: []string{"n1", "n2", "n3", "n4", "n5", "n6"}}); err != nil {
				t.Fatal(err)
			}
			a.broken = true
			a.letters("p1", "p2", "p3", "p4", "p5", "p6")
			a.post("act", form).want(303)
			a.get("trail?source=letters").want(200, "noise; of 7 events that were shown, 6 had left the list, and 6 came since: those are left alone 1 ")
			events, err := operator.New(a.inbox, "").ActionEvents(t.Context(), 1)
			if diff := cmp.Diff([]string{"letters//n7"}, events); diff != "" || err != nil {
				t.Error(err, "the trail's events (-want +got):\n"+diff)
			}
			for _, id := range []string{"p1", "p2", "p3", "p4", "p5", "p6"} {
				a.wantState("letters", id, idem.StateParked)
			}
			if action == "discard" {
				a.wantState("letters", "n7", idem.StateDiscarded)
				a.post("act", form).want(409, "none of the events any more that you were shown: nothing was done")
			}
		})
	}
}

func TestFormWithoutTheEventsThatWereShownDoesNothing(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	for _, shown := range []string{"", "x", "!", "AAAAAAAAAAA"} {
		form := a.get("confirm?source=letters&state=parked&action=discard").form("act")
		form.Set("reason", "a test")
		form.Set("shown", shown)
		a.post("act", form).want(409, "nothing was done")
	}
	a.wantState("letters", "e1", idem.StateParked)
}

func TestDiscardOfEverythingNeedsTheSourcesName(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	page := a.get("confirm?source=letters&action=discard")
	page.want(200, "These are all events of letters that are not done", "type letters")
	form := page.form("act")
	form.Set("reason", "a test")
	for _, typed := range []string{"", "yes", "notes"} {
		form.Set("sure", typed)
		a.post("act", form).want(400, "type the name of the source, letters: nothing was done")
	}
	a.wantState("letters", "e1", idem.StateParked)
	form.Set("sure", " letters ")
	a.post("act", form).want(303)
	a.wantState("letters", "e1", idem.StateDiscarded)
	for _, narrower := range []string{"confirm?source=letters&state=parked&action=discard", "confirm?source=letters&action=replay"} {
		a.get(narrower).without("These are all events")
	}
}
