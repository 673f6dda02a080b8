package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// One look says what health, doctor, the page, stats and the gauges tell.
func TestASnapshotSumsUpWhatIsNotDone(t *testing.T) {
	t.Parallel()
	d := with(t,
		"a o1 parked", "b o1 pending", "c o1 pending", // b and c wait
		"d o2 parked", "e o2 pending", // somebody takes care of d, and e came before
		"f o3 parked", "g o3 pending", // of f, too, and g came since
		"h o4 pending later", "i o4 pending", // h has failed
		"j o5 pending due claimed", "k o5 pending", "l o6 pending due",
		"m o7 unhandled free", "n o8 done", "o o9 pending later",
	)
	d.exec(`update idem_events set attempts = 2, last_error = 'no order' || E'\n' || 'a stack ' || event where event in ('s//a', 's//h');
		update idem_events set crashes = 1 where event = 's//o';
		update idem_payloads set received_at = now() - interval '1 hour' where event in ('s//a', 's//h');
		update idem_events set received_at = now() - interval '2 days' where event in ('s//m', 's//a');
		update idem_payloads set received_at = now() - interval '1 minute' where event in ('s//d', 's//e', 's//f');
		update idem_payloads set acknowledged_at = now() - interval '1 second' where event in ('s//d', 's//f');
		update idem_payloads set due_at = now() - interval '1 hour' where event = 's//j';
		update idem_payloads set due_at = now() - interval '20 seconds' where event = 's//l';
		insert into idem_pauses (source, type, key, until, actor, reason) values ('s', 'paid', '', now() + interval '1 hour', 'ana', 'a test')`)
	s, err := store.TakeSnapshot(t.Context(), d, "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	if s.Alive() != 2 || len(s.Pauses) != 1 || s.Most != 0 {
		t.Errorf("%d workers are alive, and there are %d pauses", s.Alive(), len(s.Pauses))
	}
	const hour = time.Hour
	rounded(&s.Pending.OldestOfAll, &s.Pending.Oldest, &s.Failing.Oldest, &s.Failing.OldestOfAll, &s.Parked.Oldest, &s.Parked.OldestOfAll,
		&s.Unhandled.Oldest, &s.Unhandled.OldestOfAll, &s.Due, &s.Untaken)
	paid := func(n int64) []store.OfType { return []store.OfType{{Type: "paid", Events: n}} }
	want := store.Events{
		Pending:   store.Open{Events: 8, Oldest: time.Minute},
		Failing:   store.Open{Events: 2, Oldest: hour, First: "h", FirstType: "paid", Types: paid(2), Error: "", Same: 1, Waiting: 1},
		Parked:    store.Open{Events: 1, Oldest: hour, OldestOfAll: 48 * hour, First: "a", FirstType: "paid", Types: paid(1), Error: "no order", Same: 1, Waiting: 2, Known: 2},
		Unhandled: store.Open{Events: 1, OldestOfAll: 48 * hour},
		Blocked:   4,
		Standing:  store.Standing{Entities: 2, Waiting: 3, Key: "o1", First: "a", Behind: 2, Known: 1},
		Due:       hour, Untaken: 20 * time.Second,
	}
	if diff := cmp.Diff(want, s.Events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	d.exec(`update idem_payloads set received_at = now() + interval '2 hours', due_at = now() + interval '2 hours' where event = 's//l'`)
	if s, err = store.TakeSnapshot(t.Context(), d, "s", 0); err != nil || s.Ahead.Round(hour) != 2*hour {
		t.Errorf("the clock was put back by %s, %v, want 2 hours", s.Ahead, err)
	}
	if s, err = store.TakeSnapshot(t.Context(), d, "s", 3); err != nil || s.Due.Round(hour) != hour || s.Most != 3 {
		t.Errorf("of three events the oldest is due for %s, %v, want it exact", s.Due, err)
	}
	if s, err = store.TakeSnapshot(t.Context(), d, "other", 0); err != nil || s.Alive() != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if diff := cmp.Diff(store.Events{}, s.Events); diff != "" {
		t.Errorf("of a source without events (-want +got):\n%s", diff)
	}
}

// rounded takes off the time that the statements took.
func rounded(all ...*time.Duration) {
	for _, d := range all {
		*d = d.Truncate(10 * time.Second)
	}
}
