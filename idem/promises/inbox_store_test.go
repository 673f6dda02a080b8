package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestInboxAnswersOnceTheEventIsCommitted(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	release := m.hold()
	answered := make(chan int, 1)
	go func() {
		status, _, _ := m.Post(t.Context(), paid("e1"), nil)
		answered <- status
	}()
	m.untilHeld()
	select {
	case status := <-answered:
		t.Errorf("answered %d before the event was stored", status)
	default:
	}
	m.WantState("e1", "")
	release()
	if status := <-answered; status != http.StatusOK {
		t.Errorf("answered %d, want 200", status)
	}
	m.WantState("e1", idem.StatePending)
	m.WantPayload("e1", paid("e1"))
	m.WantEffects(0)
}

func TestInboxStoresAnEventOnceHoweverOftenItComes(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(pay)
	for i, want := range []string{`{"received":true}`, `{"received":true,"duplicate":true}`, `{"received":true,"duplicate":true}`} {
		if status, answer := m.Deliver(paid("e1")); status != 200 || answer != want {
			t.Errorf("delivery %d was answered %d %s, want 200 %s", i+1, status, answer, want)
		}
	}
	if n := queryOne[int](m, `select count(*) from idem_events`); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
	if diff := cmp.Diff([]idem.Outcome{idem.Pending, idem.Duplicate, idem.Duplicate}, m.Outcomes()); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
	m.Start(m.Inbox)
	m.WantWorked(idem.Done)
	m.WantAnswer(paid("e1"), http.StatusOK) // also when it is done
	m.WantState("e1", idem.StateDone)
	m.WantEffects(1)
}

func TestInboxStoresConcurrentDuplicatesAsOneEvent(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	const n = 100
	var deliveries sync.WaitGroup
	for range n {
		deliveries.Go(func() {
			if status, answer, err := m.Post(t.Context(), paid("e1"), nil); status != http.StatusOK {
				t.Errorf("answered %d %s, %v, want 200", status, answer, err)
			}
		})
	}
	deliveries.Wait()
	counts := make(map[idem.Outcome]int)
	for _, o := range m.Outcomes() {
		counts[o]++
	}
	if diff := cmp.Diff(map[idem.Outcome]int{idem.Pending: 1, idem.Duplicate: n - 1}, counts); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
	if n := queryOne[int](m, `select count(*) from idem_events join idem_payloads using (event)`); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestInboxKeepsTheEventsOfTwoAccountsApart(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(pay)
	for _, account := range []string{"a", "b/c", "a"} {
		if status, _, err := m.Post(t.Context(), paid("e1"), map[string]string{"account": account}); err != nil || status != 200 {
			t.Fatal(status, err)
		}
	}
	m.Start(m.Inbox)
	m.WantWorked(idem.Done, idem.Done)
	if got := queryOne[[]string](m, `select array_agg(scope order by scope) from effects`); !cmp.Equal(got, []string{"a", "b/c"}) {
		t.Errorf("effects of %q, want one for each account", got)
	}
}

func TestInboxStoresNothingOfWhatIsIgnored(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Notes.Ignore("viewed")
	m.WantAnswer(`{"id":"e1","type":"viewed"}`, http.StatusOK)
	m.WantState("e1", "")
	if diff := cmp.Diff([]idem.Outcome{idem.Ignored}, m.Outcomes()); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
}

func TestInboxRefusesNoGenuineBody(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for name, c := range testkit.Named(map[string]struct {
		body  string
		state idem.State
	}{
		"unknown type":                    {`{"id":"e1","type":"new"}`, idem.StateUnhandled},
		"a field of the wrong type":       {`{"type":"strict","id":"e1"}`, idem.StateParked},
		"an id that text cannot hold":     {`{"id":"e\u0000","type":"paid"}`, idem.StateDone},
		"an entity that text cannot hold": {`{"id":"e1","type":"paid","order":"\u0000"}`, idem.StateDone},
		"an entity too long":              {`{"id":"e1","type":"paid","order":"` + long + `"}`, idem.StateDone},
		"no id":                           {`{"type":"paid"}`, idem.StateDone},
	}, "unknown type", "a field of the wrong type", "an id that text cannot hold") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			m.On(func(context.Context, pgx.Tx, *note) error { return nil })
			idem.Handle(&m.Notes.Routes, "strict", func(context.Context, pgx.Tx, *struct{ ID int }) error {
				t.Error("handled although it does not decode")
				return nil
			})
			m.WantAnswer(c.body, http.StatusOK)
			m.WantAnswer(c.body, http.StatusOK)
			const row = `select string_agg(state, ',') from idem_events`
			if got := queryOne[string](m, row); got != "pending" {
				t.Errorf("stored as %q, want one row pending", got)
			}
			m.Start(m.Inbox)
			m.Next()
			if got := queryOne[string](m, row); got != string(c.state) {
				t.Errorf("worked to %q, want %q", got, c.state)
			}
			if c.state == idem.StateDone {
				return
			}
			if got := queryOne[[]byte](m, `select body from idem_payloads`); string(got) != c.body {
				t.Errorf("the payload is kept as %q", got)
			}
		})
	}
}

func TestInboxRejectsWhatIsNotADelivery(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.MaxBody = 100
	for name, c := range map[string]struct {
		method, body, token string
		want                int
	}{
		"GET":                     {"GET", "", "right", 405},
		"one byte over the limit": {"POST", paid(strings.Repeat("e", 101-len(paid("")))), "right", 413},
		"missing token":           {"POST", paid("e1"), "", 401},
		"wrong token":             {"POST", paid("e1"), "wrong", 401},
		"no token configured":     {"POST", paid("e1"), "none", 503},
		"token cannot be checked": {"POST", paid("e1"), "unsure", 503},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, m.URL, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("token", c.token)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.want {
				t.Errorf("answered %d, want %d", resp.StatusCode, c.want)
			}
		})
	}
	if got := queryOne[int](m, `select count(*) from idem_events`); got != 0 {
		t.Errorf("%d events are stored", got)
	}
}

func TestInboxAsksForRedeliveryWhilePostgresIsUnavailable(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	m := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { takeDown(c, &down) }))
	m.On(pay)
	down.Store(true)
	for range 3 {
		m.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	}
	down.Store(false)
	m.WantState("e1", "")
	m.WantAnswer(paid("e1"), http.StatusOK)
	m.WantState("e1", idem.StatePending)
}

func TestClientThatLeavesDisturbsNobodyElse(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	release := m.hold()
	deliver := func(ctx context.Context, id string) int {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(paid(id)))
		r.Header.Set("token", "right")
		answer := httptest.NewRecorder()
		m.Inbox.ServeHTTP(answer, r)
		return answer.Code
	}
	ctx, leave := context.WithCancel(t.Context())
	var deliveries sync.WaitGroup
	start := func(ctx context.Context, id string) {
		deliveries.Go(func() {
			if status := deliver(ctx, id); status != http.StatusOK {
				t.Errorf("%s was answered %d, want 200", id, status)
			}
		})
	}
	start(ctx, "first")
	m.untilHeld()
	start(ctx, "leaver")
	start(t.Context(), "stayer")
	m.untilWaiting(2)
	leave()
	release()
	deliveries.Wait()
	for _, id := range []string{"first", "leaver", "stayer"} {
		m.WantState(id, idem.StatePending)
	}
}

// Its first payload is still there, and is nobody's.
func TestEventThatWasDeletedByHandIsDoneOnceWhenItComesAgain(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(pay)
	m.Store(letter("e1", "o1", 0), letter("gone", "o2", 1))
	m.Exec(`delete from idem_events`)
	m.Store(letter("e1", "o1", 0), letter("e2", "o1", 0), letter("e3", "o2", 2))
	m.Drain()
	m.WantWorked(idem.Done, idem.Done)
	m.WantState("e3", idem.StatePending) // until Prune, what is behind a stray waits
	blocked, _, err := operator.New(m.Inbox, "").Blocked(t.Context(), 100)
	if err != nil || len(blocked) != 1 || blocked[0].ID != "gone" || blocked[0].State != "" {
		t.Errorf("Blocked = %+v, %v, want the event that is gone", blocked, err)
	}
	if _, err := m.Inbox.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Drain()
	m.WantWorked(idem.Done)
	m.WantEffects(3)
	if n := queryOne[int](m, `select count(*) from idem_payloads`); n != 0 {
		t.Errorf("%d payloads are left", n)
	}
}

func TestScopeThatIsTooLongIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	e := letter("1", "o1", 0)
	e.Scope = strings.Repeat("é", 128)
	for mode, accept := range map[string]func(context.Context, idem.Event) (idem.Outcome, error){"inbox": m.Inbox.Accept, "inline": m.First.Accept} {
		if o, err := accept(t.Context(), e); o != idem.Retrying || err == nil || !strings.Contains(err.Error(), "the scope has 256 bytes") {
			t.Errorf("%s: Accept = %s, %v, want an error that says why", mode, o, err)
		}
	}
	e.Scope = strings.Repeat("é", 127) + "/"
	if o, err := m.Inbox.Accept(t.Context(), e); o != idem.Pending || err != nil {
		t.Errorf("Accept = %s, %v, want pending", o, err)
	}
}

func TestDeliveryThatIsAloneIsOneStatement(t *testing.T) {
	t.Parallel()
	proxy := new(pgproxy.Proxy)
	m := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { proxy.Through(c); c.MaxConns = 1 }))
	m.Inbox.PollOnly = true // or workers were notified in another statement, after the answer
	for n := range 3 {      // statements are prepared by then
		m.WantAnswer(paid(fmt.Sprint("warm", n)), http.StatusOK)
		m.WantAnswer(paid(fmt.Sprint("warm", n)), http.StatusOK)
	}
	m.countBatches()
	for _, c := range []struct {
		name string
		want int
	}{{"a new event", 1}, {"a duplicate", 1}} {
		proxy.Arm(pgproxy.Fault{})
		status, answer := m.Deliver(paid("e1"))
		steps, _ := proxy.Disarm()
		if status != http.StatusOK {
			t.Errorf("answered %d %s", status, answer)
		}
		trips := 0
		for _, step := range steps {
			if step.Message == "Sync" || step.Message == "Query" {
				trips++
			}
		}
		if trips != c.want {
			t.Errorf("%s: %d round trips, want %d: %v", c.name, trips, c.want, steps)
		}
	}
	m.wantBatches(1)
}

// One event is refused by the database: those that are stored with it are not.
func TestEventThatPostgresRefusesFailsAlone(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Exec(`create function refuse() returns trigger language plpgsql as $$ begin
			if new.event like '%bad' then raise exception 'no'; end if; return new; end $$;
		create trigger refuse before insert on idem_events for each row execute function refuse()`)
	release := m.hold()
	var deliveries sync.WaitGroup
	deliver := func(id string, want idem.Outcome) {
		deliveries.Go(func() {
			if o, err := m.Inbox.Accept(t.Context(), letter(id, id, 0)); o != want || (err != nil) != (want == idem.Retrying) {
				t.Errorf("Accept(%s) = %s, %v, want %s", id, o, err, want)
			}
		})
	}
	deliver("first", idem.Pending)
	m.untilHeld()
	for n := range 10 {
		deliver(fmt.Sprint("good", n), idem.Pending)
	}
	deliver("bad", idem.Retrying)
	m.untilWaiting(11)
	release()
	deliveries.Wait()
	if n := queryOne[int](m, `select count(*) from idem_events join idem_payloads using (event)`); n != 11 {
		t.Errorf("%d events are stored, want 11", n)
	}
	m.WantAnswer(paid("bad"), http.StatusServiceUnavailable)
	m.WantAnswer(paid("good"), http.StatusOK)
}

// A statement_timeout of the role that is long enough for a few events is no reason to refuse many that come at once,
// and come again at once.
func TestEventsThatTakeTooLongInOneStatementAreStoredInSeveral(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Exec(`create function tire() returns trigger language plpgsql as $$ begin
			if (select count(*) from fresh) > 2 then raise exception using errcode = '57014'; end if; return null; end $$;
		create trigger tires after insert on idem_events referencing new table as fresh for each statement execute function tire()`)
	release := m.hold()
	var deliveries sync.WaitGroup
	accept := func(n int) {
		if o, err := m.Inbox.Accept(t.Context(), letter(fmt.Sprint("e", n), "o1", n)); o != idem.Pending || err != nil {
			t.Errorf("Accept = %s, %v, want pending", o, err)
		}
	}
	deliveries.Go(func() { accept(0) })
	m.untilHeld() // by the first one, alone
	for n := range 19 {
		deliveries.Go(func() { accept(n + 1) })
	}
	m.untilWaiting(19)
	release()
	deliveries.Wait()
}

// Concurrent duplicates, duplicates of stored events and new ones may come in one batch.
func TestBatchTellsEachDeliveryItsOwnOutcome(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Store(letter("old", "o1", 0))
	release := m.hold()
	var mu sync.Mutex
	got := make(map[string][]idem.Outcome)
	var deliveries sync.WaitGroup
	deliver := func(ids ...string) {
		for _, id := range ids {
			deliveries.Go(func() {
				o, err := m.Inbox.Accept(t.Context(), letter(id, id, 0))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				got[id] = append(got[id], o)
			})
		}
	}
	deliver("first")
	m.untilHeld()
	deliver("old", "old", "new")
	m.untilWaiting(3)
	deliver("same")
	m.untilWaiting(4)
	deliver("same")
	m.untilWaiting(5)
	release()
	deliveries.Wait()
	counts := make(map[string]map[idem.Outcome]int)
	for id, all := range got {
		counts[id] = make(map[idem.Outcome]int)
		for _, o := range all {
			counts[id][o]++
		}
	}
	want := map[string]map[idem.Outcome]int{
		"first": {idem.Pending: 1},
		"old":   {idem.Duplicate: 2},
		"new":   {idem.Pending: 1},
		"same":  {idem.Pending: 1, idem.Duplicate: 1},
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
}

// The database, the role or the session may be set not to wait for the disk:
// what is acknowledged, and what is done, waits all the same.
func TestCommitsWaitForTheDiskWhateverTheDefault(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	}))
	m.Exec(`create table commits (n serial, what text);
		create function note_commit() returns trigger language plpgsql as $$ begin
			insert into commits (what) values (new.state || ' ' || current_setting('synchronous_commit')); return null; end $$;
		create constraint trigger note_commit after insert or update of state on idem_events
			deferrable initially deferred for each row execute function note_commit()`)
	m.On(pay)
	m.WantAnswer(paid("e1"), http.StatusOK)
	m.Drain()
	for _, e := range []idem.Event{letter("e2", "o2", 0), identify([]byte(`{"id":"e3","type":"new"}`))} {
		if _, err := m.First.Accept(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
	want := []string{"pending on", "done on", "done on", "unhandled on"}
	if diff := cmp.Diff(want, queryOne[[]string](m, `select array_agg(what order by n) from commits`)); diff != "" {
		t.Error("commits, with synchronous_commit (-want +got):\n" + diff)
	}
	for range 8 { // connections go back to the pool as they were
		if got := queryOne[string](m, `select current_setting('synchronous_commit')`); got != "off" {
			t.Errorf("the setting of the session is %s now, want off", got)
		}
	}
}

// takeDown has a pool reach no Postgres while down is set.
func takeDown(c *pgxpool.Config, down *atomic.Bool) {
	c.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { return !down.Load(), nil }
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if down.Load() {
			return nil, errors.New("no route to host")
		}
		return dial(ctx, network, addr)
	}
}
