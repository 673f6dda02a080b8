package console_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/console"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
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

func TestOverviewSaysWhatFailsWhatWaitsBehindParked(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.get("").want(200, "0 behind parked", "0 failing")
	a.letters("e1")
	a.accept(a.inbox.Accept, idem.Event{ID: "e2", Type: "paid", Key: "order-e1", Payload: body("e2")})
	a.inbox.MaxAttempts = 5
	a.accept(a.inbox.Accept, idem.Event{ID: "e3", Type: "paid", Key: "order-e3", Payload: body("e3")})
	if err := a.inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := console.New(a.inbox, a.processor)
	page.Access, a.handler = a.page.Access, page
	page.WaitForCounts()
	t.Cleanup(page.Close)
	overview := a.get("")
	overview.want(200, "1 behind parked events of 1 entity that wait behind a parked one", "1 failing failed, and tried again by themselves 1 paid")
	failing := a.get("events?failed=again&source=letters")
	failing.want(200, "e3")
	failing.without(">e1<", ">e2<")
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
