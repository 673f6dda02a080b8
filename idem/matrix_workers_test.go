package idem_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// storeRest stores an event that is behind all others, never done, and always
// due: when workers come to it, they have nothing else to do, and the test knows.
// It passes for one that a worker died with. Workers take those only when all
// that they took before is settled: so there is one order of messages.
func (r *rig) storeRest() {
	r.Helper()
	e := identify([]byte(`{"id":"~","type":"rest","order":"~"}`))
	if _, err := newInbox(r.shop.pool, r.source).Accept(r.Context(), e); err != nil {
		r.Fatal(err)
	}
	r.letTimePass()
}

func rest(context.Context, pgx.Tx, *note) error {
	return idem.RetryAt(time.Time{}, errors.New("there is nothing else to do"))
}

// letTimePass ends leases and waits. Then what a process that was killed has
// begun is over, too, and its locks are gone: first the row's, then the key's.
func (r *rig) letTimePass() {
	r.Helper()
	const pass = `with passed as (update idem_claims set until = now())
	update idem_events set due_at = null,
		crashes = case type when 'rest' then 1 else crashes end
		where state = 'pending' and (select pg_advisory_xact_lock(hashtextextended('notes//' || key, tableoid::bigint))) is not null`
	if _, err := r.shop.pool.Exec(r.Context(), pass); err != nil {
		r.Fatal(err)
	}
}

// own are the messages of a run that no other row has: those behind the claim,
// and before the rest.
func (p path) own(steps []pgproxy.Step) []pgproxy.Step {
	if !p.claimed {
		return steps
	}
	from := slices.IndexFunc(steps, func(s pgproxy.Step) bool {
		return s.Message == "Execute" && strings.HasPrefix(s.Statement, "with recursive ring")
	})
	for from >= 0 && !steps[from].Answered {
		from++
	}
	own := steps[from+1:]
	if to := slices.IndexFunc(own, isRest); p.crashes == 0 && to >= 0 {
		own = own[:to]
	}
	return own
}

func isRest(s pgproxy.Step) bool { return strings.HasPrefix(s.Statement, "with suspect") }

// wantChain: else the row would look at nothing.
func (r *rig) wantChain(said string) {
	r.Helper()
	if r.chained && !strings.Contains(said, `Execute of "commit and chain"`) {
		r.Fatalf("no event is begun with the COMMIT of another: %s", said)
	}
}

// ids are those of a trial's events, in the order of their work.
func (r *rig) ids(id string) []string {
	all := []string{id}
	for n := range r.next {
		all = append(all, behindIt(id, n+1))
	}
	return all
}

// all are ids, and that of an event of another key.
func (r *rig) all(id string) []string {
	if r.chained {
		return append(r.ids(id), behindIt(id, 1))
	}
	return r.ids(id)
}

// wantAcknowledged checks what is stored if the provider may forget the events.
func (r *rig) wantAcknowledged(id string, outcome idem.Outcome) {
	r.Helper()
	got := r.stored(id)
	if left := got == pending || got == taken; outcome.Acknowledged() && got != r.want && !(r.later && left) {
		r.Errorf("outcome %s, and stored is %+v, want %+v", outcome, got, r.want)
	}
	for _, next := range r.all(id)[1:] {
		got := r.stored(next)
		if left := got == pending || r.later && got == done || r.killed && got == taken; outcome.Acknowledged() && !left {
			r.Errorf("outcome %s, and behind it stored is %+v, want %+v", outcome, got, pending)
		}
	}
	r.wantOrder(id)
}

// wantOrder: no event has its effect before one that it is behind of.
func (r *rig) wantOrder(id string) {
	r.Helper()
	before := 1
	for _, id := range r.ids(id) {
		effects := r.stored(id).Effects
		if effects > before {
			r.Errorf("event %s has %d effects, and what comes before it %d", id, effects, before)
		}
		before = effects
	}
}

// finishByWorkers has workers finish what is stored, as if all were well again.
// Nothing of it is lost when the provider asks, and all is done, and once.
func (r *rig) finishByWorkers(id string) {
	r.Helper()
	r.workOff(id)
	r.redeliver(id)
	r.workOff(id)
	want := done
	if r.want == discarded {
		want = discarded
	}
	for _, id := range r.all(id) {
		if got := r.stored(id); got != want {
			r.Errorf("in the end stored is %+v of event %s, want %+v", got, id, want)
		}
	}
	r.wantBlameless(id)
	if r.chained {
		r.wantBlameless(behindIt(id, 1))
	}
}

// workOff has other workers do all that is pending, one event after the other.
func (r *rig) workOff(id string) {
	r.Helper()
	source := path{handler: pay}.source()
	for range queryOne[int](r.shop, `select count(*) from idem_events where state = 'pending' and type <> 'rest'`) {
		r.letTimePass()
		if _, err := runWorkers(r.Context(), r.shop.pool, source, ""); err != nil {
			r.Fatal(err)
		}
		r.wantOrder(id)
	}
}

func (r *rig) redeliver(id string) {
	r.Helper()
	i := newInbox(r.shop.pool, path{handler: pay}.source())
	for _, id := range r.all(id) {
		want := idem.Duplicate
		if r.stored(id) == unhandled {
			want = idem.Pending
		}
		if o, err := i.Accept(r.Context(), identify([]byte(paid(id)))); o != want {
			r.Errorf("in the end event %s comes again, and is %s, %v, want %s", id, o, err, want)
		}
	}
}

// wantBlameless: what a fault costs an event counts once, as a failure or as a
// crash, and a broken connection is a crash only while the event is claimed.
func (r *rig) wantBlameless(id string) {
	r.Helper()
	const look = `select attempts from idem_events where event = 'notes//' || $1`
	if attempts := queryOne[int](r.shop, look, id); r.later && attempts > r.tries {
		r.Errorf("event %s has %d failed attempts, and was tried %d times", id, attempts, r.tries)
	}
	most := r.crashes
	if r.killed || !r.claimed || r.crashes > 0 {
		most++
	}
	const lookCrashes = `select coalesce(crashes, 0) from idem_events where event = 'notes//' || $1`
	if crashes := queryOne[int](r.shop, lookCrashes, id); crashes > most {
		r.Errorf("event %s has %d crashes, want %d at most", id, crashes, most)
	}
}
