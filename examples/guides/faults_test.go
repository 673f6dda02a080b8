package guides

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// table returns the rows of the guide's table: the state of each event after each fault on each scheme. Each fault
// happens once, at a chosen step, so that each run returns the same.
func table(t *testing.T) (rows []string) {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	const tables = `
create table ledger (event text not null, part int not null); -- the effect, of two parts: money that is booked, and an order that is paid
create table seen (event text primary key);`
	if _, err := pool.Exec(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	for _, s := range schemes(pool) {
		var row strings.Builder
		row.WriteString("| " + s.name)
		for _, try := range []func(*trial){atOnce, killed, failing, leaving} {
			one := &trial{T: t, scheme: s, pool: pool}
			try(one)
			row.WriteString(" | " + one.String())
		}
		rows = append(rows, row.String()+" |")
	}
	return rows
}

// trial is the events that are delivered to one scheme with a fault, and what became of them.
type trial struct {
	*testing.T
	scheme                       scheme
	pool                         *pgxpool.Pool
	marks                        sync.Map
	events, lost, doubled, never int
}

func (t *trial) String() string {
	var parts []string
	for _, p := range []struct {
		what string
		n    int
	}{{"loses", t.lost}, {"doubles", t.doubled}, {"never done", t.never}} {
		switch {
		case p.n > 0 && t.events == 1:
			parts = append(parts, p.what)
		case p.n > 0:
			parts = append(parts, fmt.Sprintf("%s %d of %d", p.what, p.n, t.events))
		}
	}
	if parts == nil {
		return "ok"
	}
	return strings.Join(parts, ", ")
}

// fault happens while an event is received and processed.
type fault struct {
	killAt int    // the step after which the process is killed, once; 0 for none
	fails  bool   // the handler fails, once, between its two parts
	leaves bool   // the sender leaves, each time
	meet   func() // waits for the other process

	steps int  // that were reached until the kill
	over  bool // the kill or the failure has happened
}

// kill ends a process by a panic.
type kill struct{}

// step is a point at which a process may be killed.
func (f *fault) step() {
	if f.over || f.killAt == 0 {
		return
	}
	if f.steps++; f.steps == f.killAt {
		f.over = true
		panic(kill{})
	}
}

// survive is deferred: a process that is killed is started again.
func survive() {
	if p := recover(); p != nil && p != any(kill{}) {
		panic(p)
	}
}

// atOnce delivers an event twice at the same time, to two processes, and has the workers of both work at the
// same time. A provider's pause is longer than an attempt: neither is delivered again before both are answered.
func atOnce(t *trial) {
	id := "evt_" + rand.Text()
	var both, all sync.WaitGroup
	var twice [2]struct {
		fault        fault
		arrive       func()
		acknowledged bool
	}
	both.Add(len(twice))
	for n := range twice {
		p := &twice[n]
		p.arrive = sync.OnceFunc(both.Done)
		p.fault = fault{meet: func() { p.arrive(); both.Wait() }}
		all.Go(func() { p.acknowledged = t.receive(id, &p.fault) })
	}
	all.Wait()
	for n := range twice {
		p := &twice[n]
		all.Go(func() {
			defer p.arrive()
			p.acknowledged = p.acknowledged || t.insist(id, &p.fault)
			t.work(id, &p.fault)
		})
	}
	all.Wait()
	t.judge(id, twice[0].acknowledged && twice[1].acknowledged)
}

// killed delivers an event for each step of the scheme, after which the process is killed.
func killed(t *trial) {
	for f := new(fault); ; {
		f = &fault{killAt: f.killAt + 1, meet: alone}
		id, acknowledged := t.deliver(f)
		if !f.over {
			return // there is no such step
		}
		t.judge(id, acknowledged)
	}
}

// failing delivers an event to a handler that fails the first time, after it has booked.
func failing(t *trial) { t.judge(t.deliver(&fault{fails: true, meet: alone})) }

// leaving delivers an event from a sender that does not wait for the handler's end.
func leaving(t *trial) { t.judge(t.deliver(&fault{leaves: true, meet: alone})) }

func alone() {} // there is no other process

// deliver delivers an event with a fault.
func (t *trial) deliver(f *fault) (id string, acknowledged bool) {
	id = "evt_" + rand.Text()
	acknowledged = t.insist(id, f)
	t.work(id, f)
	return id, acknowledged
}

// insist delivers an event until it is answered 200, ten times at most.
func (t *trial) insist(id string, f *fault) (acknowledged bool) {
	for range 10 {
		if acknowledged = t.receive(id, f); acknowledged {
			break
		}
	}
	return acknowledged
}

// receive delivers an event once.
func (t *trial) receive(id string, f *fault) (acknowledged bool) {
	defer survive()
	request, leave := context.WithCancel(t.Context())
	defer leave()
	return t.scheme.receive(&delivery{f, t.pool, &t.marks, id, t.Context(), request, leave}) == http.StatusOK
}

// work has the scheme's worker work until it has no error.
func (t *trial) work(id string, f *fault) {
	once := func() (done bool) {
		defer survive()
		return t.scheme.work(&delivery{f, t.pool, &t.marks, id, t.Context(), t.Context(), func() {}}) == nil
	}
	for i := 0; i < 10 && t.scheme.work != nil && !once(); i++ {
	}
}

// judge counts the effects of an event: both parts, once each, or it went wrong.
func (t *trial) judge(id string, acknowledged bool) {
	var first, second int
	const count = `select count(*) filter (where part = 1), count(*) filter (where part = 2) from ledger where event = $1`
	if err := t.pool.QueryRow(t.Context(), count, id).Scan(&first, &second); err != nil {
		t.Fatal(err)
	}
	t.events++
	switch {
	case max(first, second) > 1:
		t.doubled++
	case !acknowledged:
		t.never++
	case min(first, second) == 0:
		t.lost++
	}
}
