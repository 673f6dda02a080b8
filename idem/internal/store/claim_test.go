package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/internal/store"
)

func TestAClaimTakesTheFirstOfEachLaneThatIsDueAndNobodyHolds(t *testing.T) {
	t.Parallel()
	each(t, map[string]struct {
		before []string
		with   func(*store.Search)
		claims string // ids, each with its crashes
		after  []string
	}{
		"nothing is due": {[]string{"a o1 pending later", "b o2 parked", "c o3 done"}, nil, "", []string{"a o1 pending later", "b o2 parked", "c o3 done"}},
		"the second of a lane is held back": {
			[]string{"a o1 pending due", "b o1 pending due", "c o2 pending due"},
			nil,
			"a0 c0",
			[]string{"a o1 pending due ours", "b o1 pending", "c o2 pending due ours"},
		},
		"behind a parked one": {[]string{"a o1 parked", "b o1 pending due"}, nil, "", []string{"a o1 parked", "b o1 pending"}},
		"as many as wanted": {
			[]string{"a o1 pending due", "b o2 pending due"},
			func(s *store.Search) { s.Limit = 1 },
			"a0",
			[]string{"a o1 pending due ours", "b o2 pending due"},
		},
		"due after the position": {[]string{"a o1 pending due"}, func(s *store.Search) { s.After = time.Now().Add(time.Hour) }, "", []string{"a o1 pending due"}},
		"of another source":      {[]string{"a o1 pending due"}, func(s *store.Search) { s.Source = "other" }, "", []string{"a o1 pending due"}},
		"workers that live hold it": {
			[]string{"a o1 pending due claimed", "b o1 pending due"},
			nil,
			"",
			[]string{"a o1 pending due claimed", "b o1 pending"},
		},
		"its workers died": {[]string{"a o1 pending due dead"}, nil, "a1", []string{"a o1 pending due ours"}},
		"it must run alone, and may not": {
			[]string{"a o1 pending due dead"},
			func(s *store.Search) { s.Crashed = 1 },
			"",
			[]string{"a o1 pending due dead"},
		},
		"one that must run alone is claimed at a time": {
			[]string{"a o1 pending due dead", "b o2 pending due dead", "c o3 pending due"},
			func(s *store.Search) { s.Crashed, s.WithCrashed = 1, true },
			"a1 c0",
			[]string{"a o1 pending due ours", "b o2 pending due dead", "c o3 pending due ours"},
		},
		"it is our own, and we know of it": {
			[]string{"a o1 pending due claimed"},
			func(s *store.Search) { s.Worker, s.Running = alive, []string{event("a", "").RowKey()} },
			"",
			[]string{"a o1 pending due claimed"},
		},
		"it is our own, and the answer was lost": {
			[]string{"a o1 pending due claimed"},
			func(s *store.Search) { s.Worker = alive },
			"a0",
			[]string{"a o1 pending due claimed"},
		},
		"a crowd": {
			[]string{"a o1 pending due claimed", "b o1 pending due", "c o2 pending later", "d o1 pending due", "e o3 pending due"},
			func(s *store.Search) { s.Limit, s.Crowd = 1, true },
			"",
			[]string{"a o1 pending due claimed", "b o1 pending", "c o2 pending later", "d o1 pending", "e o3 pending due"},
		},
		"no crowd": {
			[]string{"a o1 pending due claimed", "b o1 pending due", "d o1 pending due"},
			func(s *store.Search) { s.Limit = 1 },
			"",
			[]string{"a o1 pending due claimed", "b o1 pending", "d o1 pending due"},
		},
	}, func(t *testing.T, c struct {
		before []string
		with   func(*store.Search)
		claims string
		after  []string
	},
	) {
		d := with(t, c.before...)
		search := store.Search{Source: "s", Limit: 10, Worker: ours, Running: []string{}, Crashed: 2}
		if c.with != nil {
			c.with(&search)
		}
		found, err := store.ClaimEvents(t.Context(), d, search)
		if err != nil || ids(found.Claims) != c.claims {
			t.Errorf("claimed %q, %v, want %q", ids(found.Claims), err, c.claims)
		}
		d.want(c.after...)
	})
}

func TestAClaimPassesALockedEventBy(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 pending due", "b o2 pending due")
	d.locked("a", func() {
		found, err := store.ClaimEvents(t.Context(), d, store.Search{Source: "s", Limit: 10, Worker: ours, Crashed: 2})
		if err != nil || ids(found.Claims) != "b0" {
			t.Errorf("claimed %q, %v, want b only", ids(found.Claims), err)
		}
	})
}

// A claim looks at what was due when it began. One that was claimed since, and put off, is not
// due any more, and is as free as before.
func TestAClaimLeavesWhatWasClaimedAndPutOffSinceItBegan(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 pending due dead", "b o2 pending due dead")
	d.claimed(func() {
		d.exec(`update idem_events set starts = starts + 1, claimed_by = null where event = $1`, event("a", "").RowKey())
		d.exec(`update idem_payloads set due_at = now() + interval '1 hour' where event = $1`, event("a", "").RowKey())
	}, "b1")
	d.want("a o1 pending later", "b o2 pending due ours")
}

// The one before it was passed since: nobody would make it due again.
func TestAClaimHoldsNothingBackBehindWhatHasLeftItsLaneSinceItBegan(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 parked", "b o1 pending due dead")
	d.claimed(func() { d.exec(`update idem_payloads set lane = null where event = $1`, event("a", "").RowKey()) }, "")
	var due bool
	if err := d.QueryRow(t.Context(), `select due_at is not null from idem_payloads where event = $1`, event("b", "").RowKey()).Scan(&due); err != nil || !due {
		t.Errorf("due is %t, %v", due, err)
	}
}

// claimed claims events whose workers are dead, and calls meanwhile between the claim's begin and its end.
func (d tables) claimed(meanwhile func(), want string) {
	d.Helper()
	d.exec(`alter table idem_workers rename to those_workers`)
	d.during(`idem_workers as select 99::bigint as id where not begun()`, func() {
		found, err := store.ClaimEvents(d.Context(), d, store.Search{Source: "s", Limit: 10, Worker: ours, Crashed: 2})
		if err != nil || ids(found.Claims) != want {
			d.Errorf("claimed %q, %v, want %q", ids(found.Claims), err, want)
		}
	}, meanwhile)
}

func TestAClaimEndsOnceAndByItsHolderOnly(t *testing.T) {
	t.Parallel()
	each(t, map[string]struct {
		number  int
		end     store.End
		settled bool
		after   []string
	}{
		"parked":                {1, store.End{State: store.Parked, Attempts: 1}, true, []string{"a o1 parked", "b o1 pending"}},
		"parked, and passed":    {1, store.End{State: store.Parked, Attempts: 1, LeavesLane: true}, true, []string{"a o1 parked free", "b o1 pending due"}},
		"unhandled":             {1, store.End{State: store.Unhandled, LeavesLane: true}, true, []string{"a o1 unhandled free", "b o1 pending due"}},
		"later":                 {1, store.End{State: store.Pending, Wait: time.Hour}, true, []string{"a o1 pending later", "b o1 pending"}},
		"by an earlier claim":   {0, store.End{State: store.Parked}, false, []string{"a o1 pending due claimed", "b o1 pending"}},
		"by a claim to come":    {2, store.End{State: store.Parked}, false, []string{"a o1 pending due claimed", "b o1 pending"}},
		"by an earlier, passed": {0, store.End{State: store.Parked, LeavesLane: true}, false, nil},
	}, func(t *testing.T, c struct {
		number  int
		end     store.End
		settled bool
		after   []string
	},
	) {
		d := with(t, "a o1 pending due claimed", "b o1 pending")
		claim := store.Claim{Event: event("a", "o1"), Number: c.number}
		for n, want := range []bool{c.settled, false} {
			if got, err := store.EndClaim(t.Context(), d, claim, c.end); got != want || err != nil {
				t.Errorf("time %d: settled is %t, %v, want %t", n+1, got, err, want)
			}
		}
		if c.after != nil {
			d.want(c.after...)
		}
	})
}

// A person has done it meanwhile, by SQL.
func TestTheEndOfAClaimChangesNoEventThatIsDone(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 done claimed")
	claim := store.Claim{Event: event("a", "o1"), Number: 1}
	if ended, err := store.EndClaim(t.Context(), d, claim, store.End{State: store.Pending}); ended || err != nil {
		t.Errorf("ended is %t, %v", ended, err)
	}
	d.want("a o1 done claimed")
}

// Between the look at the others and this, one that was slow has written its row.
func TestAWorkerThatHasGivenASignSinceItWasSeenIsNotDeleted(t *testing.T) {
	t.Parallel()
	d := with(t)
	seen, err := store.Sign(t.Context(), d, store.Worker{ID: 9, Source: "s", Host: "host", PID: 3}, 0)
	if err != nil || len(seen) != 2 {
		t.Fatalf("the others are %+v, %v, want %d and %d", seen, err, alive, ours)
	}
	d.exec(`update idem_workers set seen_at = seen_at + interval '1 microsecond' where id = $1`, alive)
	deleted, err := store.DeleteWorkers(t.Context(), d, seen)
	if diff := cmp.Diff([]int64{ours}, deleted); diff != "" || err != nil {
		t.Errorf("deleted, %v (-want +got):\n%s", err, diff)
	}
	var left int
	if err := d.QueryRow(t.Context(), `select count(*) from idem_workers where id in ($1, 9)`, alive).Scan(&left); err != nil || left != 2 {
		t.Errorf("%d of the living are left, %v, want 2", left, err)
	}
}

// A worker whose row others have deleted writes it again, by its next sign.
func TestAWorkerWhoseRowWasDeletedWritesItAgain(t *testing.T) {
	t.Parallel()
	d := with(t)
	d.exec(`delete from idem_workers where id = $1`, ours)
	if _, err := store.Sign(t.Context(), d, store.Worker{ID: ours, Source: "s", Host: "host", PID: 2}, time.Minute); err != nil {
		t.Fatal(err)
	}
	living, err := store.LivingWorkers(t.Context(), d, "s")
	if err != nil || len(living) != 2 || living[0].ID != ours {
		t.Errorf("alive are %+v, %v", living, err)
	}
}

// While the first is being processed its body is locked, and the second is looked at again in a moment. It holds the
// others back, however many they are.
func TestACrowdWaitsForTheSecondOfItsLaneWhileTheFirstIsBeingProcessed(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 pending due claimed", "b o1 pending due", "c o1 pending due", "d o1 pending due", "e o2 pending due")
	tx, err := d.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `delete from idem_payloads where event = $1`, event("a", "").RowKey()); err != nil {
		t.Fatal(err)
	}
	var before time.Time
	if err := d.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&before); err != nil {
		t.Fatal(err)
	}
	found, err := store.ClaimEvents(t.Context(), d, store.Search{Source: "s", Limit: 2, Worker: ours, Crashed: 2, Crowd: true})
	if err != nil || ids(found.Claims) != "" || found.Postponed != 1 {
		t.Errorf("claimed %q, postponed %d, %v, want none and 1", ids(found.Claims), found.Postponed, err)
	}
	d.exec(`update idem_payloads set due_at = now() + interval '1 hour' where due_at > $1`, before) // a moment, which may be over
	d.want("a o1 pending due claimed", "b o1 pending later", "c o1 pending", "d o1 pending", "e o2 pending due")
}

func TestAReplayClaimsAnOpenEventThatNobodyAliveHasClaimed(t *testing.T) {
	t.Parallel()
	each(t, map[string]struct {
		before, after string
		crashes       int // of the claim; -1 if there is none
	}{
		"parked":                    {"a o1 parked", "a o1 parked ours", 0},
		"unhandled":                 {"a o1 unhandled free", "a o1 unhandled free ours", 0},
		"pending":                   {"a o1 pending due", "a o1 pending due ours", 0},
		"it waits":                  {"a o1 pending", "a o1 pending ours", 0},
		"its worker is dead":        {"a o1 parked dead", "a o1 parked ours", 1},
		"its worker is alive":       {"a o1 pending due claimed", "a o1 pending due claimed", -1},
		"another replay claimed it": {"a o1 parked claimed", "a o1 parked claimed", -1},
		"done":                      {"a o1 done", "a o1 done", -1},
		"discarded":                 {"a o1 discarded", "a o1 discarded", -1},
		"there is only another one": {"b o1 parked", "b o1 parked", -1},
	}, func(t *testing.T, c struct {
		before, after string
		crashes       int
	},
	) {
		d := with(t, c.before)
		claim, ok, err := store.ClaimEvent(t.Context(), d, event("a", "").RowKey(), ours)
		if ok != (c.crashes >= 0) || err != nil || ok && (claim.Crashes != c.crashes || claim.Number == 0 || claim.State == "" || string(claim.Payload) != "{}") {
			t.Errorf("claimed %+v, %t, %v, want %d crashes", claim, ok, err, c.crashes)
		}
		d.want(c.after)
	})
}

func TestAReplayLeavesALockedEvent(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 parked")
	d.locked("a", func() {
		if claim, ok, err := store.ClaimEvent(t.Context(), d, event("a", "").RowKey(), ours); ok || err != nil {
			t.Errorf("claimed %+v, %v", claim, err)
		}
	})
	d.want("a o1 parked")
}

func TestTheClaimOfAReplayEndsInItsLaneOrOutsideOfIt(t *testing.T) {
	t.Parallel()
	each(t, map[string]struct {
		before []string
		end    store.End
		after  []string
	}{
		"it was parked, and fails":            {[]string{"a o1 parked claimed", "b o1 pending"}, store.End{State: store.Parked, Attempts: 1}, []string{"a o1 parked", "b o1 pending"}},
		"it was parked, fails, and is passed": {[]string{"a o1 parked claimed", "b o1 pending"}, store.End{State: store.Parked, LeavesLane: true}, []string{"a o1 parked free", "b o1 pending due"}},
		"it had no handler, and fails":        {[]string{"a o1 unhandled free claimed", "b o1 pending due"}, store.End{State: store.Parked}, []string{"a o1 parked", "b o1 pending due"}},
		"it had no handler, and has none":     {[]string{"a o1 unhandled free claimed"}, store.End{State: store.Unhandled, LeavesLane: true}, []string{"a o1 unhandled free"}},
		"it was pending, and is left":         {[]string{"a o1 pending claimed"}, store.End{State: store.Pending, AsItWas: true}, []string{"a o1 pending"}},
		"it had no handler, and is left":      {[]string{"a o1 unhandled free claimed"}, store.End{State: store.Unhandled, AsItWas: true}, []string{"a o1 unhandled free"}},
		"it is done by somebody":              {[]string{"a o1 done claimed"}, store.End{State: store.Parked}, []string{"a o1 done claimed"}},
	}, func(t *testing.T, c struct {
		before []string
		end    store.End
		after  []string
	},
	) {
		d := with(t, c.before...)
		if _, err := store.EndClaim(t.Context(), d, store.Claim{Event: event("a", "o1"), Number: 1}, c.end); err != nil {
			t.Error(err)
		}
		d.want(c.after...)
	})
}
