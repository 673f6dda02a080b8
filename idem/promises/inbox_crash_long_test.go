//go:build long

package promises_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// Four processes work on 40 keys. In the middle of each of six handlers its
// process is killed, with what else it has taken, and another one is started.
func TestWorkersThatAreKilledNeitherLoseNorDouble(t *testing.T) {
	t.Parallel()
	const events, keys, fatal = 400, 40, 6
	p := openProcesses(t)
	p.Exec(fmt.Sprintf(`insert into fatal select 60 * n - 1 from generate_series(1, %d) n`, fatal))
	for _, n := range rand.New(rand.NewPCG(1, 2)).Perm(events / 2) { // the provider's time decides, not arrival
		p.storeOne(nth(n, keys))
	}
	workers := make(map[string]*workerProcess)
	start := func() {
		w := p.startWorker(fatal + 1) // an event may be unlucky with each of them
		workers[w.name] = w
	}
	for range 4 {
		start()
	}
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		for n := events / 2; n < events; n++ {
			p.storeOne(nth(n, keys))
		}
	}()
	for done, killed := 0, 0; done < events || killed < fatal; {
		switch state, of, _ := strings.Cut(p.nextState(), " "); state {
		case "done":
			done++
		case "halfway":
			killed++
			if w := workers[of]; w != nil { // not halfway with two of them
				delete(workers, of)
				w.kill()
				p.release(<-w.died)
				start()
			}
		default:
			t.Fatalf("%s is %s", of, state)
		}
	}
	<-stored
	p.WantEffects(events)
	p.wantEachOnceInOrder()
	if left := queryOne[int](p.app, `select count(*) from idem_events where state <> 'done'`); left != 0 {
		t.Errorf("%d events are not done", left)
	}
	if n := queryOne[int](p.app, `select count(*) from idem_events where crashes > 0`); n < fatal {
		t.Errorf("crashes are counted against %d events, want %d at least", n, fatal)
	}
}

// One event ends each process that works on it. Those of another provider, in the
// same processes, are bystanders, too.
func TestEventThatKillsItsWorkersIsParkedAndNoOther(t *testing.T) {
	t.Parallel()
	const events, keys = 60, 12
	p := openProcesses(t)
	poison := idem.Event{ID: "poison", Type: "paid", Key: "crash-005", Payload: []byte(`{"id":"poison","order":"crash-005"}`)}
	poison.OccurredAt = nth(0, keys).OccurredAt // before the others of its key
	others := idem.NewInbox(p.Pool, &otherNotes{})
	for n := range events {
		if n == events/2 {
			p.storeOne(poison)
		}
		p.storeOne(nth(n, keys))
		e := nth(events+n, keys)
		e.Key, e.Payload = "other-"+e.Key, fmt.Appendf(nil, `{"id":%q,"order":"other-%s"}`, e.ID, e.Key)
		if o, err := others.Accept(t.Context(), e); o != idem.Pending {
			t.Fatal(o, err)
		}
	}
	died := make(chan *workerProcess, 10)
	deaths := 0
	begin := func() {
		w := p.startWorker(3)
		go func() { died <- <-w.died }()
	}
	for range 3 {
		begin()
	}
	// Of the poison's key, no event is done while that is not.
	for done, parked := 0, false; !parked || done < events+events-events/keys; {
		select {
		case w := <-died:
			deaths++
			p.release(w)
			begin()
		case state := <-p.states:
			switch {
			case state == "parked notes//poison":
				parked = true
			case strings.HasPrefix(state, "done "):
				done++
			default:
				t.Fatalf("an event is %s", state)
			}
		case <-time.After(patience):
			t.Fatal("the workers do nothing")
		}
	}
	if deaths != 3 {
		t.Errorf("%d processes died, want 3", deaths)
	}
	const why = "3 processes died while they processed it, or were cut off from Postgres: fix the handler, then replay it"
	if got := queryOne[string](p.app, `select crashes || ' ' || last_error from idem_events where state = 'parked'`); got != "3 "+why {
		t.Errorf("it is parked because of %q, want %q", got, why)
	}
	// Twice, because it is tried beside others once more; from then on it is alone.
	if n := queryOne[int](p.app, `select max(crashes) from idem_events where event not like '%poison'`); n > 2 {
		t.Errorf("%d crashes are counted against an event that was processed together with the poison, want 2 at most", n)
	}

	p.Deploy(func(n *notes) { idem.Handle(&n.Routes, "paid", pay) }) // which does not exit
	if replayed, err := p.First.Replay(t.Context(), idem.Filter{}); replayed.Done != 1 || err != nil {
		t.Errorf("Replay = %+v, %v, want one done", replayed, err)
	}
	for range 1 + events/keys { // the poison, and those that waited behind it
		if state := p.nextState(); !strings.HasPrefix(state, "done ") {
			t.Errorf("an event is %s", state)
		}
	}
	p.WantEffects(events + events + 1)
	p.wantEachOnceInOrder()
}

// A payload that is fixed is tried like a new one.
func TestRequeueForgetsCrashes(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(pay)
	m.Store(letter("e1", "o1", 1))
	m.dieWith("e1", 3)
	m.Drain()
	m.WantWorked(idem.Parked)
	if n, err := m.Inbox.Requeue(t.Context(), idem.Filter{}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	m.Drain()
	m.WantWorked(idem.Done)
	m.WantRow("e1", `(state, crashes)`, `(done,0)`)
}

// The connection is cut at each message of a worker's COMMIT, and of what
// travels with it.
func TestConnectionCutAtAWorkersCommitNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	proxy := new(pgproxy.Proxy)
	m := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.MaxConns = 6 }))
	worker := m.NewInbox(openPool(t, m.Pool.Config().ConnString(), proxy.Through))
	worker.Workers, worker.PollOnly = 1, true
	fault, ran := pgproxy.Fault{}, false
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		err := pay(ctx, tx, n)
		if !ran {
			ran = true
			proxy.Arm(fault) // COMMIT is next
		}
		return err
	})
	m.Start(worker)
	events := 0
	for _, point := range []pgproxy.Point{pgproxy.BeforeSent, pgproxy.BeforeAnswer} {
		for step := 1; step <= 10; step++ { // more than there are
			id := fmt.Sprint("e", events)
			fault, ran = pgproxy.Fault{Step: step, Point: point}, false
			m.Store(letter(id, id, 1))
			o := m.Next()
			for ; o.Outcome == idem.Retrying; o = m.Next() {
			}
			if o.Outcome != idem.Done {
				t.Fatalf("cut %s, message %d: %s, %v", point, step, o.Outcome, o.Err)
			}
			if _, fired := proxy.Disarm(); !fired && step == 1 {
				t.Error("the connection was not cut")
			}
			m.WantRow(id, `(state, attempts <= 1, crashes)`, `(done,t,0)`)
			events++
		}
	}
	m.WantEffects(events)
}
