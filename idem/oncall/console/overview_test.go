package console_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/oncall/console"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/internal/testkit"
)

// queues is a provider's side.
type queues struct {
	all  []gauge.Queue
	says string
	err  error
	wait chan struct{}
}

func (q *queues) Queues(context.Context) ([]gauge.Queue, error) { return q.all, q.err }

func (q *queues) Release(_ context.Context, id string) (string, error) {
	if q.wait != nil {
		<-q.wait
	}
	if id == "panic" {
		panic("no such queue")
	}
	return q.says, q.err
}

func (q *queues) Enable(_ context.Context, id string) (string, error) {
	for n := range q.all {
		if q.all[n].ID == id {
			q.all[n].Enabled = true
		}
	}
	return "the webhook was enabled", q.err
}

// What happens while it is disabled is lost as events: the person who sees it has the button beside it.
func TestADisabledQueueIsEnabledAndThatIsRecorded(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	q := &queues{all: []gauge.Queue{{ID: "q1", Name: "payments"}, {ID: "q2", Name: "fine", Enabled: true}, {Name: "made by nobody"}}}
	a.page.Queues = map[string]gauge.Queues{"letters": q}
	p := a.get("")
	p.want(200, "payments disabled: what happens meanwhile never comes Reason (optional) Enable it fine delivers")
	if n := strings.Count(p.body, `action="enable"`); n != 1 {
		t.Errorf("%d queues can be enabled, want the one that is disabled and has an id", n)
	}
	form := p.form("enable")
	form.Set("reason", "a mistake")
	a.post("enable", form).want(303)
	a.get("trail?source=letters").want(200, "ana enable queue queue q1 a mistake 0 the webhook was enabled")
	a.get("").want(200, "payments delivers")
}

func TestProviderQueuesAreShownAndReleased(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	q := &queues{says: "the probe passed, the queue was resumed", all: []gauge.Queue{
		{ID: "q1", Name: "payments", URL: "https://shop.example/hooks", Enabled: true, Interrupted: true, Penalized: 15, DeletesIn: 13*24*time.Hour + 5*time.Hour},
		{ID: "q2", Name: "transfers", Enabled: true, Penalized: 1200},
		{ID: "q3", Name: "fine", Enabled: true},
		{ID: "q4", Name: "off"},
	}}
	a.page.Queues = map[string]gauge.Queues{"letters": q}
	p := a.get("")
	p.want(200, "payments https://shop.example/hooks stopped: nothing is delivered · the provider deletes the oldest events in 13 d 5 h",
		"transfers slowed down: 1,200 failed deliveries", "fine delivers", "off disabled", "Probe, then resume", "Probe, then remove the penalty")
	if n := strings.Count(p.body, `action="release"`); n != 2 {
		t.Errorf("%d queues can be released, want those two that are held up", n)
	}
	form := p.form("release")
	form.Set("reason", "deployed")
	a.post("release", form).want(303)
	a.get("trail?source=letters").want(200, "ana release queue queue q1 deployed 0 the probe passed, the queue was resumed")

	q.says, q.err = "nothing was changed", errors.New("the probe did not pass")
	a.post("release", form).want(500, "the probe did not pass")
	a.get("trail?source=letters").want(200, "nothing was changed; failed: the probe did not pass")
	a.get("").want(200, "The provider does not tell: the probe did not pass")
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
	page.WaitForAll()
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

func TestOverviewSaysWhatFailsWhatWaitsBehindParked(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.get("").want(200, "0 blocked", "0 failing")
	a.letters("e1")
	a.accept(a.inbox.Accept, idem.Event{ID: "e2", Type: "paid", Key: "order-e1", Payload: body("e2")})
	a.inbox.MaxAttempts = 5
	a.accept(a.inbox.Accept, idem.Event{ID: "e3", Type: "paid", Key: "order-e3", Payload: body("e3")})
	if err := a.inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := console.New(a.inbox, a.first)
	page.Access, a.handler = a.page.Access, page
	page.WaitForAll()
	t.Cleanup(page.Close)
	overview := a.get("")
	overview.want(200, "1 event is parked, until a person acts: first e1, paid; 1 event waits behind.", "1 blocked entities whose events wait for an earlier one 1 event behind a parked one", "1 failing failed, and tried again by themselves 1 paid")
	failing := a.get("events?state=failing&source=letters")
	failing.want(200, "e3")
	failing.without("<bdi>e1<", "<bdi>e2<")
}

func TestTypesThatFailAreAFewHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	const many = `insert into idem_events (event, type, key, state, attempts) select 'letters//' || n, repeat('<b>', 80) || n, '', 'pending', 1 from generate_series(1, 10000) n;
		insert into idem_payloads (event, source, received_at, body) select event, 'letters', received_at, '{}' from idem_events`
	if _, err := a.pool.Exec(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	p := a.get("")
	p.want(200, "10,000 failing", "<b><b>")
	p.without("<b>")
	if n := strings.Count(p.text(), "<b><b>"); len(p.body) > 40_000 || n == 0 {
		t.Errorf("the overview has %d bytes", len(p.body))
	}
}

// Whoever opens the page at night sees first whether something is wrong, and what to do.
func TestTheFirstLineIsTheVerdict(t *testing.T) {
	t.Parallel()
	verdict := regexp.MustCompile(`(?s)<ul class="verdict">(.*?)</ul>`)
	for name, row := range map[string]struct {
		happens func(*app)
		says    []string // in its order
	}{
		"nothing is wrong":    {func(a *app) { a.workersElsewhere() }, []string{"good", "All is well."}},
		"workers never began": {func(*app) {}, []string{"warn", "No workers are alive: what comes is stored"}},
		"all workers are dead": {func(a *app) {
			a.accept(a.inbox.Accept, idem.Event{ID: "e1", Type: "paid", Payload: body("e1")})
			testkit.Exec(a, a.pool, `insert into idem_workers values (9, 'letters', 'shop-1', 7, now() - interval '1 day', now() - interval '43 minutes')`)
			testkit.Exec(a, a.pool, `update idem_payloads set due_at = now() - interval '1 minute' where event = 'letters//e1'`)
		}, []string{"bad", "No workers are alive, and 1 event waits for them. Start the program"}},
		"its queue is stopped, and the watch says so, too": {func(a *app) {
			a.workersElsewhere()
			a.page.Queues = map[string]gauge.Queues{"letters": &queues{all: []gauge.Queue{{ID: "q1", Name: "payments", Enabled: true, Interrupted: true}}}}
			a.page.Health = health.New(part{{Source: "letters", Name: "webhook", Says: "it is stopped"}, {Source: "letters", Name: "silence", Says: "none came"}})
			a.page.Health.Logger = nil
		}, []string{"bad", "The provider has stopped its queue payments"}},
		"one database of two sources": {func(a *app) {
			a.workersElsewhere()
			a.page.Health = health.New(part{{Source: "letters", Name: "postgres", Says: "it is read-only"}, {Source: "notes", Name: "postgres", Says: "it is read-only"}, {Source: "letters", Name: "canary", Says: "it fails"}})
			a.page.Health.Logger = nil
		}, []string{"bad", "letters, notes: Postgres does not answer, or takes no writes. it is read-only"}},
		"two wrong tokens that are equal": {func(a *app) {
			a.workersElsewhere()
			a.page.Health = health.New(part{{Source: "letters", Name: "refused", Healthy: true, Warning: true, Says: "2 with the same wrong token"}})
			a.page.Health.Logger = nil
		}, []string{"warn", "letters: Deliveries are refused: a token, a secret or a clock is wrong. 2 with the same wrong token"}},
		"an event fails": {func(a *app) {
			a.inbox.MaxAttempts = 5
			a.letters("e1")
			a.workersElsewhere()
		}, []string{"warn", "1 event fails, and is tried again by itself"}},
		"an event is parked, and others wait": {func(a *app) {
			a.letters("e1")
			a.accept(a.inbox.Accept, idem.Event{ID: "e2", Type: "paid", Key: "order-e1", Payload: body("e2")})
			a.workersElsewhere()
		}, []string{"bad", "1 event is parked, until a person acts: first e1, paid; 1 event waits behind."}},
		"somebody takes care of it": {func(a *app) {
			a.letters("e1")
			a.workersElsewhere()
			a.inbox.MaxAttempts = 5
			a.letters("e2")
			a.confirm("confirm?action=acknowledge&source=letters", "ticket 7").want(303)
		}, []string{"good", "All is well. Of 2 events that failed, somebody takes care."}},
		"the provider stopped its queue": {func(a *app) {
			a.workersElsewhere()
			a.page.Queues = map[string]gauge.Queues{"letters": &queues{all: []gauge.Queue{{ID: "q1", Name: "payments", Enabled: true, Interrupted: true}}}}
		}, []string{"bad", "The provider has stopped its queue payments"}},
		"a part of the program is not well": {func(a *app) {
			a.workersElsewhere()
			a.page.Health = health.New(part{{Source: "letters", Name: "broker", Says: "it is away"}, {Source: "erp", Name: "stock", Says: "it is empty"}, {Source: "erp", Name: "fine", Healthy: true}})
			a.page.Health.Logger = nil
		}, []string{"bad", "letters: The broker takes no messages, or none of a type. it is away", "bad", "erp: The check stock fails. it is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			row.happens(a)
			p := a.get("")
			found := verdict.FindStringSubmatch(p.body)
			if found == nil {
				t.Fatalf("the page has no verdict:\n%s", p.body)
			}
			rest := regexp.MustCompile(`<li class="(\w+)">`).ReplaceAllString(found[1], " $1 ")
			shown := answer{T: t, body: rest}.text()
			for _, says := range row.says {
				_, after, ok := strings.Cut(shown, says)
				if !ok {
					t.Fatalf("the verdict is %q, want %q", answer{T: t, body: rest}.text(), row.says)
				}
				shown = after
			}
			if strings.Contains(shown, " bad ") || strings.Contains(shown, " warn ") {
				t.Errorf("the verdict goes on with %q", shown)
			}
		})
	}
}

// part is a part of a program, with what it says.
type part []check.Result

func (p part) Examine(context.Context, check.Limits) []check.Result { return p }

func TestProcessesAreShownWithTheirLastSignOfLife(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.workersElsewhere()
	testkit.Exec(t, a.pool, `insert into idem_workers values (9, 'letters', 'shop-2', 8, now() - interval '1 day', now() - interval '43 minutes')`)
	a.get("").want(200, "process 8 on shop-2: no sign of life for 43 min", "process 7 on shop-1: sign of life ")
}

func TestOnlyAnInboxThatAnswersFirstNeedsWorkersBeforeAnEventWaits(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.get("").want(200, "letters: No workers are alive: what comes is stored, and waits for them.")
	a.get("").without("<bdi>notes</bdi>: ")
}

func TestEventsArePausedAndResumedOnTheOverview(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	a.fix()
	form := a.get("").form("pause")
	for says, change := range map[string][2]string{
		"Say for how many hours, 168 at most": {"hours", "169"},
		"Say why":                             {"hours", "2"}, // and no reason
	} {
		form.Set(change[0], change[1])
		a.post("pause", form).want(400, says)
	}
	form.Set("hours", "2")
	form.Set("type", "paid")
	form.Set("reason", "the bank is away")
	a.post("pause", form).want(303)
	a.get("").want(200, "Events are paused: deliveries are stored", "paid until 20", "by ana: the bank is away", "Resume")
	a.post("resume", a.get("").form("resume")).want(303)
	if p := a.get(""); strings.Contains(p.body, "the bank is away") {
		t.Error("it is paused still")
	}
	form.Del("reason")
	a.post("resume", form).want(409, "There is no such pause any more")
	a.get("trail?source=letters").want(200, "ana pause events of type paid the bank is away", "ana resume events of type paid")
}
