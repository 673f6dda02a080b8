package console_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/console"
	"github.com/paghooks/paghooks/idem/idemtest"
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

// queues is a provider's side.
type queues struct {
	all  []idem.Queue
	says string
	err  error
	wait chan struct{}
}

func (q *queues) Queues(context.Context) ([]idem.Queue, error) { return q.all, q.err }

func (q *queues) Release(_ context.Context, id string) (string, error) {
	if q.wait != nil {
		<-q.wait
	}
	if id == "panic" {
		panic("no such queue")
	}
	return q.says, q.err
}

func TestProviderQueuesAreShownAndReleased(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	q := &queues{says: "the probe passed, the queue was resumed", all: []idem.Queue{
		{ID: "q1", Name: "payments", URL: "https://shop.example/hooks", Enabled: true, Interrupted: true, Penalized: 15, DeletesIn: 13*24*time.Hour + 5*time.Hour},
		{ID: "q2", Name: "transfers", Enabled: true, Penalized: 1200},
		{ID: "q3", Name: "fine", Enabled: true},
		{ID: "q4", Name: "off"},
	}}
	a.page.Queues = map[string]idem.Queues{"letters": q}
	for _, address := range []string{"", "queues"} {
		p := a.get(address)
		p.want(200, "payments https://shop.example/hooks stopped: nothing is delivered · the provider deletes the oldest events in 13 d 5 h",
			"transfers slowed down: 1,200 failed deliveries", "fine delivers", "off disabled", "Probe, then resume", "Probe, then remove the penalty")
		if n := strings.Count(p.body, `action="release"`); n != 2 {
			t.Errorf("%d queues can be released, want those two that are held up", n)
		}
	}
	form := a.get("queues").form("release")
	form.Set("reason", "deployed")
	a.post("release", form).want(303)
	a.get("trail?source=letters").want(200, "ana release queue queue q1 deployed 0 the probe passed, the queue was resumed")

	q.says, q.err = "nothing was changed", errors.New("the probe did not pass")
	a.post("release", form).want(500, "the probe did not pass")
	a.get("trail?source=letters").want(200, "nothing was changed; failed: the probe did not pass")
	a.get("queues").want(200, "The provider does not tell: the probe did not pass")
	form.Set("queue", "panic")
	a.post("release", form).want(500, "panic: no such queue")
	form.Set("source", "notes")
	a.post("release", form).want(404)
}

// Counting may take longer than people wait, of ten million events on a slow disk.
func TestOverviewDoesNotWaitForSlowCounts(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	page := console.New(a.inbox)
	page.Access = a.page.Access
	t.Cleanup(page.Close)
	tx, err := a.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `lock table idem_payloads`); err != nil {
		t.Fatal(err)
	}
	a.handler = page
	a.get("").want(200, "The events are being counted")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	page.WaitForCounts()
	a.get("").want(200, "1 parked")
}

func TestErrorOfTheDatabaseIsShownWithWhatToDo(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	if _, err := a.pool.Exec(t.Context(), `alter table idem_payloads rename to gone`); err != nil {
		t.Fatal(err)
	}
	a.get("").want(200, "The events could not be counted", "the tables are missing: call idem.Migrate")
	a.get("events").want(500, "the tables are missing: call idem.Migrate")
}

// Since Postgres 15 an ordinary role may not create tables.
func TestPageWorksForARoleThatMayOnlyReadAndWrite(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	owner := openPool(t, url, "")
	if err := idem.Migrate(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	var role string
	if err := owner.QueryRow(t.Context(), `select current_schema()`).Scan(&role); err != nil {
		t.Fatal(err)
	}
	schema := role
	role += "_app"
	for _, sql := range []string{
		`create role ` + role, `grant usage on schema ` + schema + ` to ` + role,
		`grant select, insert, update, delete on all tables in schema ` + schema + ` to ` + role,
	} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := owner.Exec(context.Background(), `drop owned by `+role+`; drop role `+role); err != nil {
			t.Error(err)
		}
	})
	pool := openPool(t, url, role)
	if _, err := pool.Exec(t.Context(), `create table mine ()`); err == nil {
		t.Fatal("the role may create tables: this proves nothing")
	}
	a := openApp(t, pool)
	a.letters("e1", "e2", "e3")
	a.get("").want(200, "3 parked")
	a.fix()
	a.post("reveal", map[string][]string{"source": {"letters"}, "id": {"e1"}}).want(200, "cpf")
	for _, action := range []string{"dry-run", "replay"} {
		a.confirm("confirm?source=letters&id=e1&action="+action, "").want(303)
	}
	a.confirm("confirm?source=letters&id=e2&action=requeue", "").want(303)
	a.confirm("confirm?source=letters&id=e3&action=discard", "x").want(303)
	a.wantState("letters", "e1", idem.StateDone)
	a.wantState("letters", "e2", idem.StatePending)
	a.wantState("letters", "e3", idem.StateDiscarded)
	a.get("trail?source=letters").want(200, "reveal", "dry replay", "replay", "requeue", "discard")
}

func openPool(t *testing.T, url, role string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	if role != "" {
		config.ConnConfig.RuntimeParams["role"] = role
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// publisher refuses all.
type publisher struct{}

func (publisher) Publish(context.Context, idem.Message) error {
	return idem.NoRetry(errors.New("no such topic"))
}

func TestMessagesOfAnOutboxCanBeRequeued(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	outbox := idem.NewOutbox(a.pool, "shop", publisher{})
	outbox.Logger = nil
	a.page = console.New(outbox)
	a.page.Access = func(*http.Request) (string, console.Access) { return "ana", console.Access{See: true, Act: true} }
	t.Cleanup(a.page.Close)
	a.handler = a.page
	err := pgx.BeginFunc(t.Context(), a.pool, func(tx pgx.Tx) error {
		return outbox.EmitTx(t.Context(), tx, idem.Message{ID: "m1", Type: "order.paid", Key: "o1"})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := outbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.wantState("shop", "m1", idem.StateParked)
	a.get("event?source=shop&id=m1").want(200, "Requeue…")
	a.confirm("confirm?action=requeue&source=shop&id=m1", "the topic is there").want(303)
	a.wantState("shop", "m1", idem.StatePending)
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
