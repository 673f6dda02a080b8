package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// keys are the row keys of ids.
func keys(ids ...string) (all []string) {
	for _, id := range ids {
		all = append(all, event(id, "").RowKey())
	}
	return all
}

func TestADiscardTakesWhatIsInItsStatesAndNotBeingProcessed(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		d := with(t, "a o1 parked", "b o1 pending", "c o2 done", "d o3 pending due", "e o4 parked", "f o5 parked")
		reason := "discarded: by hand"
		d.locked("e", func() {
			d.inTx(func(ctx context.Context, tx pgx.Tx) error {
				got, lanes, err := store.Discard(ctx, tx, keys("a", "c", "d", "e"), []string{store.Parked}, &reason, keep)
				if diff := cmp.Diff(keys("a"), got); diff != "" {
					t.Errorf("discarded (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]string{event("a", "o1").Lane()}, lanes); diff != "" {
					t.Errorf("lanes (-want +got):\n%s", diff)
				}
				if err != nil {
					return err
				}
				return store.PromoteWaiting(ctx, tx, lanes)
			})
		})
		d.want("a o1 discarded", "b o1 pending due", "c o2 done", "d o3 pending due", "e o4 parked", "f o5 parked")
		var archived int
		if err := d.QueryRow(t.Context(), `select count(*) from idem_archive`).Scan(&archived); err != nil || archived != map[bool]int{true: 1}[keep] {
			t.Errorf("%d bodies are archived, %v, keep is %t", archived, err, keep)
		}
	}
}

func TestARequeueTakesWhatIsInItsStatesAndNotBeingProcessedBackIntoItsLane(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 parked", "b o2 unhandled free", "c o3 done", "d o4 parked", "e o5 pending later")
	d.locked("d", func() {
		got, err := store.Requeue(t.Context(), d, keys("a", "b", "c", "d", "e"), []string{store.Pending, store.Parked, store.Unhandled})
		slices.Sort(got)
		if diff := cmp.Diff(keys("a", "b", "e"), got); diff != "" || err != nil {
			t.Errorf("requeued, %v (-want +got):\n%s", err, diff)
		}
	})
	d.want("a o1 pending due", "b o2 pending due", "c o3 done", "d o4 parked", "e o5 pending due")
}

func TestARedeliveryMakesAParkedOrUnhandledEventPendingAndKeepsItsCrashes(t *testing.T) {
	t.Parallel()
	each(t, map[string]struct {
		before, after string
		revived       bool
	}{
		"parked":            {"a o1 parked", "a o1 pending due", true},
		"parked and passed": {"a o1 parked free", "a o1 pending due", true},
		"unhandled":         {"a o1 unhandled free", "a o1 pending due", true},
		"pending":           {"a o1 pending", "a o1 pending", false},
		"done":              {"a o1 done", "a o1 done", false},
	}, func(t *testing.T, c struct {
		before, after string
		revived       bool
	},
	) {
		d := with(t, c.before)
		d.exec(`update idem_events set attempts = 3, crashes = 2`)
		if revived, err := store.Revive(t.Context(), d, store.Incoming{Event: event("a", "o1")}); revived != c.revived || err != nil {
			t.Errorf("revived is %t, %v, want %t", revived, err, c.revived)
		}
		d.want(c.after)
		var attempts, crashes int
		if err := d.QueryRow(t.Context(), `select attempts, crashes from idem_events`).Scan(&attempts, &crashes); err != nil || crashes != 2 || (attempts == 0) != c.revived {
			t.Errorf("it has %d attempts and %d crashes, %v", attempts, crashes, err)
		}
	})
}

func TestAPromotionMakesTheFirstOfALaneDueThatWaits(t *testing.T) {
	t.Parallel()
	promote := func(d tables) {
		b := &pgx.Batch{}
		store.Promote(b, event("", "o1").Lane(), new(bool))
		if err := d.SendBatch(t.Context(), b).Close(); err != nil {
			d.Error(err)
		}
	}
	waiting := func(d tables) {
		if err := store.PromoteWaiting(t.Context(), d, []string{event("", "o1").Lane()}); err != nil {
			d.Error(err)
		}
	}
	stuck := func(n int64) func(tables) {
		return func(d tables) {
			counted, err := store.CountStuck(t.Context(), d, "s")
			promoted, err2 := store.PromoteStuck(t.Context(), d, "s", true)
			if counted != n || promoted != n || err != nil || err2 != nil {
				d.Errorf("%d are stuck and %d are promoted, %v, %v, want %d", counted, promoted, err, err2, n)
			}
		}
	}
	each(t, map[string]struct {
		before []string
		act    func(tables)
		after  []string
	}{
		"a pending one":                 {[]string{"a o1 pending", "b o1 pending"}, promote, []string{"a o1 pending due", "b o1 pending"}},
		"not one that is parked itself": {[]string{"a o1 parked", "b o1 pending"}, promote, []string{"a o1 parked", "b o1 pending"}},
		"no other lane":                 {[]string{"a o2 pending"}, promote, []string{"a o2 pending"}},
		"one behind what is processed":  {[]string{"a o1 pending due claimed", "b o1 pending"}, waiting, []string{"a o1 pending due claimed", "b o1 pending due"}},
		"the first only that waits":     {[]string{"a o1 parked", "b o1 pending", "c o1 pending"}, waiting, []string{"a o1 parked", "b o1 pending due", "c o1 pending"}},
		"what is stuck":                 {[]string{"a o1 pending", "b o2 parked", "c o3 parked", "d o3 pending"}, stuck(1), []string{"a o1 pending due", "b o2 parked", "c o3 parked", "d o3 pending"}},
		"nothing is stuck":              {[]string{"a o1 parked", "b o1 pending", "c o2 unhandled free"}, stuck(0), []string{"a o1 parked", "b o1 pending", "c o2 unhandled free"}},
	}, func(t *testing.T, c struct {
		before []string
		act    func(tables)
		after  []string
	},
	) {
		d := with(t, c.before...)
		c.act(d)
		d.want(c.after...)
	})
}

func TestParkedEventsArePassedAndThoseBehindThemGoOn(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 parked", "b o1 pending", "c o2 parked free", "d o3 pending due", "e o4 parked", "f o4 pending")
	d.inTx(func(ctx context.Context, tx pgx.Tx) error {
		lanes, err := store.Pass(ctx, tx, "s", 10)
		slices.Sort(lanes)
		if diff := cmp.Diff([]string{event("", "o1").Lane(), event("", "o4").Lane()}, lanes); diff != "" {
			t.Errorf("lanes (-want +got):\n%s", diff)
		}
		if err != nil {
			return err
		}
		return store.PromoteWaiting(ctx, tx, lanes)
	})
	d.want("a o1 parked free", "b o1 pending due", "c o2 parked free", "d o3 pending due", "e o4 parked free", "f o4 pending due")
}

func TestPruneDeletesWhatIsClosedOrParkedOfItsDaysAndNothingThatIsOwedOrLocked(t *testing.T) {
	t.Parallel()
	lines := []string{
		"a o1 done old", "b o2 unhandled free old", "c o3 discarded old", "d o4 parked old", "e o4 pending old", "f o5 pending due old",
		"h o7 done", "i o8 done old",
	}
	d := with(t, lines...)
	days, err := store.CountDays(t.Context(), d, "s")
	if err != nil {
		t.Fatal(err)
	}
	var old time.Time
	for day, n := range days {
		if n.Events > 1 {
			old = day
		}
	}
	if diff := cmp.Diff(store.DayOf{Day: old, Events: 7, Closed: 4, Parked: 1}, days[old]); diff != "" {
		t.Errorf("the old day (-want +got):\n%s", diff)
	}
	d.locked("i", func() {
		gone, err := store.PruneEvents(t.Context(), d, "s", []time.Time{old}, nil)
		if gone[old] != 3 || err != nil {
			t.Errorf("%d closed events are deleted, %v, want 3", gone[old], err)
		}
	})
	d.want("d o4 parked", "e o4 pending", "f o5 pending due", "h o7 done", "i o8 done")
	gone, err := store.PruneEvents(t.Context(), d, "s", nil, []time.Time{old})
	if gone[old] != 1 || err != nil {
		t.Errorf("%d parked events are deleted, %v, want 1", gone[old], err)
	}
	d.want("e o4 pending", "f o5 pending due", "h o7 done", "i o8 done")
	if gone, err := store.PruneEvents(t.Context(), d, "other", []time.Time{old}, []time.Time{old}); len(gone) > 0 || err != nil {
		t.Errorf("of another source %v are deleted, %v", gone, err)
	}
}
