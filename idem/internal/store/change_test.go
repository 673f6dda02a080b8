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
		d := with(t, "a o1 parked", "b o1 parked held", "c o2 done", "d o3 pending due", "e o4 parked", "f o5 parked")
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
				return store.PromoteHeld(ctx, tx, lanes)
			})
		})
		d.want("a o1 discarded", "b o1 parked due held", "c o2 done", "d o3 pending due", "e o4 parked", "f o5 parked")
		var archived int
		if err := d.QueryRow(t.Context(), `select count(*) from idem_archive`).Scan(&archived); err != nil || archived != map[bool]int{true: 1}[keep] {
			t.Errorf("%d bodies are archived, %v, keep is %t", archived, err, keep)
		}
	}
}

func TestARequeueTakesWhatIsInItsStatesAndNotBeingProcessedBackIntoItsLane(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 parked", "b o2 unhandled free", "c o3 done", "d o4 parked", "e o5 parked held")
	d.locked("d", func() {
		got, err := store.Requeue(t.Context(), d, keys("a", "b", "c", "d", "e"), []string{store.Parked, store.Unhandled})
		slices.Sort(got)
		if diff := cmp.Diff(keys("a", "b", "e"), got); diff != "" || err != nil {
			t.Errorf("requeued, %v (-want +got):\n%s", err, diff)
		}
	})
	d.want("a o1 pending due", "b o2 pending due", "c o3 done", "d o4 parked", "e o5 pending due")
}

func TestAPromotionMakesTheFirstOfALaneDueThatWaits(t *testing.T) {
	t.Parallel()
	promote := func(d tables) {
		b := &pgx.Batch{}
		store.Promote(b, event("", "o1").Lane(), nil)
		if err := d.SendBatch(t.Context(), b).Close(); err != nil {
			d.Error(err)
		}
	}
	held := func(d tables) {
		if err := store.PromoteHeld(t.Context(), d, []string{event("", "o1").Lane()}); err != nil {
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
		"a pending one":                  {[]string{"a o1 pending", "b o1 pending"}, promote, []string{"a o1 pending due", "b o1 pending"}},
		"a held one":                     {[]string{"a o1 parked held", "b o1 parked held"}, promote, []string{"a o1 parked due held", "b o1 parked held"}},
		"not one that is parked itself":  {[]string{"a o1 parked", "b o1 pending"}, promote, []string{"a o1 parked", "b o1 pending"}},
		"no other lane":                  {[]string{"a o2 pending"}, promote, []string{"a o2 pending"}},
		"one behind what is processed":   {[]string{"a o1 pending due claimed", "b o1 pending"}, held, []string{"a o1 pending due claimed", "b o1 pending due"}},
		"only behind the first, if held": {[]string{"a o1 parked", "b o1 parked held", "c o1 parked held"}, held, []string{"a o1 parked", "b o1 parked due held", "c o1 parked held"}},
		"what is stuck":                  {[]string{"a o1 pending", "b o2 parked held", "c o3 parked", "d o3 pending"}, stuck(2), []string{"a o1 pending due", "b o2 parked due held", "c o3 parked", "d o3 pending"}},
		"nothing is stuck":               {[]string{"a o1 parked", "b o1 pending", "c o2 unhandled free"}, stuck(0), []string{"a o1 parked", "b o1 pending", "c o2 unhandled free"}},
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

func TestAHeldEventWhoseTurnHasComeIsFoundOnce(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 parked due held", "b o2 parked held", "c o3 parked", "d o3 parked due held", "e o4 pending due")
	found, last, err := store.FindHeld(t.Context(), d, "s", store.Place{}, 10)
	if diff := cmp.Diff(keys("a"), found); diff != "" || err != nil {
		t.Errorf("found, %v (-want +got):\n%s", err, diff)
	}
	if found, next, err := store.FindHeld(t.Context(), d, "s", last, 10); len(found) > 0 || next != last || err != nil {
		t.Errorf("after %+v there are %q, %v, want none", last, found, err)
	}
	d.want("a o1 parked due held", "b o2 parked held", "c o3 parked", "d o3 parked held", "e o4 pending due") // d waits again
}

// The one before it was passed since, and has made it due: nobody would do so again.
func TestAHeldEventBehindWhatHasLeftItsLaneMeanwhileStaysDue(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 parked", "b o1 parked due held")
	d.exec(`alter table idem_payloads rename to those_payloads`)
	d.during(`idem_payloads as select * from those_payloads where begun()`, func() {
		if found, _, err := store.FindHeld(t.Context(), d, "s", store.Place{}, 10); len(found) > 0 || err != nil {
			t.Errorf("found %q, %v", found, err)
		}
	}, func() { d.exec(`update those_payloads set lane = null where event = $1`, keys("a")[0]) })
	d.want("a o1 parked free", "b o1 parked due held")
}

func TestHeldEventsAreFoundPageByPageAndNoneTwice(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 parked due held", "b o2 parked due held", "c o3 parked due held")
	var all []string
	for last := (store.Place{}); len(all) < 5; {
		found, next, err := store.FindHeld(t.Context(), d, "s", last, 1)
		if err != nil {
			t.Fatal(err)
		}
		if next == last {
			break
		}
		all, last = append(all, found...), next
	}
	if diff := cmp.Diff(keys("a", "b", "c"), all); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestHeldEventsBecomePendingWhereThereAreWorkers(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 parked due held", "b o1 parked held", "c o2 parked")
	if n, err := store.Adopt(t.Context(), d, "s"); n != 1 || err != nil {
		t.Errorf("Adopt = %d, %v, want 1", n, err)
	}
	d.want("a o1 pending due", "b o1 parked held", "c o2 parked")
}

// A delivery has done it since it was found: pending, it would be done twice.
func TestAHeldEventThatIsDoneMeanwhileBecomesPendingNoMore(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 parked due held", "b o2 parked due held")
	d.exec(`alter table idem_payloads rename to those_payloads`)
	d.during(`idem_payloads as select * from those_payloads where begun()`, func() {
		if n, err := store.Adopt(t.Context(), d, "s"); n != 1 || err != nil {
			t.Errorf("Adopt = %d, %v, want 1", n, err)
		}
	}, func() {
		d.exec(`update idem_events set state = 'done' where event = $1`, keys("a")[0])
		d.exec(`delete from those_payloads where event = $1`, keys("a")[0])
	})
	d.want("a o1 done", "b o2 pending due")
}

func TestTheTurnOfAHeldEventEndsParkedOrUnhandled(t *testing.T) {
	t.Parallel()
	reason := "no such order"
	each(t, map[string]struct {
		state string
		pass  bool
		after []string
	}{
		"parked":             {store.Parked, false, []string{"a o1 parked", "b o1 parked held", "c o2 parked"}},
		"parked, and passed": {store.Parked, true, []string{"a o1 parked free", "b o1 parked due held", "c o2 parked free"}},
		"unhandled":          {store.Unhandled, false, []string{"a o1 unhandled free", "b o1 parked due held", "c o2 parked"}},
	}, func(t *testing.T, c struct {
		state string
		pass  bool
		after []string
	},
	) {
		d := with(t, "a o1 parked due held", "b o1 parked held", "c o2 parked")
		if err := store.EndHeld(t.Context(), d, event("b", "o1"), c.state, &reason, c.pass); err != nil {
			t.Error(err) // it is not b's turn
		}
		if err := store.EndHeld(t.Context(), d, event("a", "o1"), c.state, &reason, c.pass); err != nil {
			t.Error(err)
		}
		if err := store.EndHeld(t.Context(), d, event("c", "o2"), c.state, &reason, c.pass); err != nil {
			t.Error(err) // it has failed itself, and is no less parked without a handler
		}
		d.want(c.after...)
	})
}

func TestParkedEventsArePassedAndThoseBehindThemGoOn(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 parked", "b o1 parked held", "c o2 parked free", "d o3 pending due", "e o4 parked", "f o4 pending")
	d.inTx(func(ctx context.Context, tx pgx.Tx) error {
		lanes, err := store.Pass(ctx, tx, "s", 10)
		slices.Sort(lanes)
		if diff := cmp.Diff([]string{event("", "o1").Lane(), event("", "o4").Lane()}, lanes); diff != "" {
			t.Errorf("lanes (-want +got):\n%s", diff)
		}
		if err != nil {
			return err
		}
		return store.PromoteHeld(ctx, tx, lanes)
	})
	d.want("a o1 parked free", "b o1 parked due held", "c o2 parked free", "d o3 pending due", "e o4 parked free", "f o4 pending due")
}

func TestPruneDeletesWhatIsClosedOrParkedOfItsDaysAndNothingThatIsOwedHeldOrLocked(t *testing.T) {
	t.Parallel()
	lines := []string{
		"a o1 done old", "b o2 unhandled free old", "c o3 discarded old", "d o4 parked old", "e o4 parked held old", "f o5 pending due old",
		"g o6 retrying free old", "h o7 done", "i o8 done old",
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
	if diff := cmp.Diff(store.DayOf{Day: old, Events: 8, Closed: 4, Parked: 1}, days[old]); diff != "" {
		t.Errorf("the old day (-want +got):\n%s", diff)
	}
	d.locked("i", func() {
		gone, err := store.PruneEvents(t.Context(), d, "s", []time.Time{old}, nil)
		if gone[old] != 3 || err != nil {
			t.Errorf("%d closed events are deleted, %v, want 3", gone[old], err)
		}
	})
	d.want("d o4 parked", "e o4 parked held", "f o5 pending due", "g o6 retrying free", "h o7 done", "i o8 done")
	gone, err := store.PruneEvents(t.Context(), d, "s", nil, []time.Time{old})
	if gone[old] != 1 || err != nil {
		t.Errorf("%d parked events are deleted, %v, want 1", gone[old], err)
	}
	d.want("e o4 parked held", "f o5 pending due", "g o6 retrying free", "h o7 done", "i o8 done")
	if gone, err := store.PruneEvents(t.Context(), d, "other", []time.Time{old}, []time.Time{old}); len(gone) > 0 || err != nil {
		t.Errorf("of another source %v are deleted, %v", gone, err)
	}
}

// It would be processed again, by a replay.
func TestARetryingEventOfAnIgnoredTypeThatIsDoneMeanwhileStaysDone(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 retrying free", "b o2 retrying free")
	if err := store.EndRetrying(t.Context(), d, "s", []string{"refunded"}); err != nil {
		t.Error(err)
	}
	d.want("a o1 retrying free", "b o2 retrying free") // they are of another type
	d.exec(`alter table idem_payloads rename to those_payloads`)
	d.during(`idem_payloads as select * from those_payloads where begun()`, func() {
		if err := store.EndRetrying(t.Context(), d, "s", []string{"paid"}); err != nil {
			t.Error(err)
		}
	}, func() {
		d.exec(`update idem_events set state = 'done' where event = $1`, keys("a")[0])
		d.exec(`delete from those_payloads where event = $1`, keys("a")[0])
	})
	d.want("a o1 done", "b o2 unhandled free")
}
