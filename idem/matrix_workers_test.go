package idem_test

import (
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// letTimePass ends leases and waits. What a process that was killed has begun is
// over by then, and its locks are gone.
func (r *rig) letTimePass() {
	r.Helper()
	r.until(`select not exists (select from pg_stat_activity where application_name = any ($1))`, r.victims)
	r.exec(`delete from idem_workers`)
	r.exec(`update idem_payloads set due_at = now() where due_at > now()`)
}

const claimBegins = "begin isolation level read committed"

// ownOf are the messages of a run that no other row has.
func (p path) ownOf(steps []pgproxy.Step) []pgproxy.Step {
	if p.own == "" {
		return steps
	}
	claims := slices.IndexFunc(steps, func(s pgproxy.Step) bool { return s.Statement == claimBegins })
	from := claims + slices.IndexFunc(steps[max(claims, 0):], func(s pgproxy.Step) bool {
		return s.Statement != claimBegins && strings.HasPrefix(s.Statement, p.own)
	})
	if claims < 0 || from < claims {
		return nil
	}
	own := steps[from:]
	if to := slices.IndexFunc(own, func(s pgproxy.Step) bool { return s.Statement == claimBegins }); to >= 0 {
		own = own[:to]
	}
	return own
}

// ids are those of a trial's events, in the order in which they are to be done.
func (r *rig) ids(id string) []string {
	all := []string{id}
	for n := range r.behind {
		all = append(all, behindIt(id, n+1))
	}
	return all
}

// wantAcknowledged checks what is stored if the provider may forget the events.
func (r *rig) wantAcknowledged(id string, outcome idem.Outcome) {
	r.Helper()
	got := r.stored(id)
	if left := got == pending || got == claimed; outcome.Acknowledged() && got != r.want && !(r.later && left) {
		r.Errorf("outcome %s, and stored is %+v, want %+v", outcome, got, r.want)
	}
	for _, next := range r.ids(id)[1:] {
		got := r.stored(next)
		left := got == pending || r.later && (got == claimed || got == done || r.free && got == r.want)
		if outcome.Acknowledged() && !left {
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
		if effects > before && !r.free {
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
	for _, id := range r.ids(id) {
		want := done
		if r.want == discarded {
			want = discarded
		}
		got := r.stored(id)
		if r.want == doneWhole {
			got.Body = false // of a worker that keeps it, or of one that does not
		}
		if got != want {
			r.Errorf("in the end stored is %+v of event %s, want %+v", got, id, want)
		}
	}
	r.wantBlameless(id)
}

// workOff has other workers do all that can be done, once they have waited. An
// event that may have crashed a process twice waits until it is alone in this one.
func (r *rig) workOff(id string) {
	r.Helper()
	i := quietInbox(r.app.pool, path{handler: pay}.source())
	for deadline := time.Now().Add(patience); r.left(id); {
		r.letTimePass()
		if err := i.Drain(r.Context()); err != nil {
			r.Fatal(err)
		}
		r.wantOrder(id)
		if time.Now().After(deadline) {
			r.Fatalf("workers leave event %s: %+v", id, r.stored(id))
		}
	}
}

// left reports whether workers have something to do.
func (r *rig) left(id string) bool {
	r.Helper()
	for _, id := range r.ids(id) {
		switch got := r.stored(id); {
		case got.State == idem.StatePending:
			return true
		case got == parked && !r.free: // what is behind it waits
			return false
		}
	}
	return false
}

func (r *rig) redeliver(id string) {
	r.Helper()
	i := quietInbox(r.app.pool, path{handler: pay}.source())
	for _, id := range r.ids(id) {
		want := idem.Duplicate
		if got := r.stored(id); got == unhandled || got == parked {
			want = idem.Pending
		}
		if o, err := i.Accept(r.Context(), identify([]byte(paid(id)))); o != want {
			r.Errorf("in the end event %s comes again, and is %s, %v, want %s", id, o, err, want)
		}
	}
}

// wantBlameless: what a fault costs an event counts once, as a failure or as a
// crash.
func (r *rig) wantBlameless(id string) {
	r.Helper()
	attempts := queryOne[int](r.app, `select attempts from idem_events where event = 'notes//' || $1`, id)
	if r.later && attempts > r.tries {
		r.Errorf("event %s has %d failed attempts, and was tried %d times", id, attempts, r.tries)
	}
	crashes := queryOne[int](r.app, `select crashes from idem_events where event = 'notes//' || $1`, id)
	if crashes > r.crashes+1 {
		r.Errorf("event %s has %d crashes, want %d at most", id, crashes, r.crashes+1)
	}
}
