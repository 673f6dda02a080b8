package store_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

func TestANewEventIsMarkedUnlessItIsStoredOrAnEarlierOneOfItsLaneIs(t *testing.T) {
	t.Parallel()
	each(t, map[string]struct {
		stored string
		marked bool
	}{
		"nothing is stored":                   {"", true},
		"it is done":                          {"n o1 done", false},
		"it is pending":                       {"n o1 pending due", false},
		"it is discarded":                     {"n o1 discarded", false},
		"an earlier one is pending":           {"a o1 pending due", false},
		"an earlier one is parked":            {"a o1 parked", false},
		"an earlier one is done":              {"a o1 done", true},
		"an earlier one is parked and passed": {"a o1 parked free", true},
		"one of another entity is parked":     {"a o2 parked", true},
	}, func(t *testing.T, c struct {
		stored string
		marked bool
	},
	) {
		var lines []string
		if c.stored != "" {
			lines = append(lines, c.stored)
		}
		d := with(t, lines...)
		mark := func(b *pgx.Batch, s *pgtx.Session) { store.Mark(b, event("n", "o1"), false, s) }
		if got := d.marked(mark); got != c.marked {
			t.Errorf("marked is %t, want %t", got, c.marked)
		}
		if c.marked && d.marked(mark) {
			t.Error("it is marked twice")
		}
	})
}

func TestAStoredEventIsMarkedInItsTurnAndByItsClaimOnly(t *testing.T) {
	t.Parallel()
	type how = store.Stored
	each(t, map[string]struct {
		lines  []string
		how    how
		marked bool
	}{
		"the claim is its latest":               {[]string{"n o1 pending due claimed"}, how{Claim: 1}, true},
		"the claim is an earlier one":           {[]string{"n o1 pending due claimed"}, how{Claim: 2}, false},
		"it was parked":                         {[]string{"n o1 parked claimed"}, how{Claim: 1}, true},
		"it had no handler":                     {[]string{"n o1 unhandled free claimed"}, how{Claim: 1}, true},
		"it is done":                            {[]string{"n o1 done claimed"}, how{Claim: 1}, false},
		"it was discarded":                      {[]string{"n o1 discarded claimed"}, how{Claim: 1}, false},
		"an earlier one waits":                  {[]string{"a o1 parked", "n o1 pending due claimed"}, how{Claim: 1}, false},
		"a later one waits":                     {[]string{"n o1 pending due claimed", "z o1 pending"}, how{Claim: 1}, true},
		"an earlier one of another lane":        {[]string{"a o2 parked", "n o1 pending due claimed"}, how{Claim: 1}, true},
		"it is free, and an earlier one is not": {[]string{"a o1 parked", "n o1 unhandled free claimed"}, how{Claim: 1}, false},
		"it is free, and a later one is not":    {[]string{"n o1 unhandled free claimed", "z o1 parked"}, how{Claim: 1}, true},
	}, func(t *testing.T, c struct {
		lines  []string
		how    how
		marked bool
	},
	) {
		for _, c.how.Archive = range []bool{false, true} {
			d := with(t, c.lines...)
			if got := d.marked(func(b *pgx.Batch, s *pgtx.Session) { store.MarkStored(b, event("n", "o1"), c.how, s) }); got != c.marked {
				t.Errorf("marked is %t, want %t", got, c.marked)
			}
			var archived int
			if err := d.QueryRow(t.Context(), `select count(*) from idem_archive`).Scan(&archived); err != nil || archived != map[bool]int{true: 1}[c.marked && c.how.Archive] {
				t.Errorf("%d bodies are archived, %v, with Archive %t", archived, err, c.how.Archive)
			}
			if c.marked {
				d.want(withDone(c.lines)...)
				continue
			}
			d.want(sortedLines(c.lines)...)
		}
	})
}

func TestAStoredEventIsNotMarkedWhileAnotherOfItsLaneIsBeingProcessed(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 pending due claimed", "b o2 pending due claimed")
	tx, err := d.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `select pg_advisory_xact_lock(hashtextextended($1, 'idem_events'::regclass::oid::bigint))`, event("a", "o1").Lane()); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{"a": false, "b": true} {
		key := map[string]string{"a": "o1", "b": "o2"}[id]
		if got := d.marked(func(b *pgx.Batch, s *pgtx.Session) {
			store.MarkStored(b, event(id, key), store.Stored{Claim: 1}, s)
		}); got != want {
			t.Errorf("%s: marked is %t, want %t", id, got, want)
		}
	}
}

// A first try must not wait for another attempt in the lane, which may take long.
func TestANewEventIsNotMarkedWhileAnotherOfItsLaneIsBeingProcessed(t *testing.T) {
	t.Parallel()
	d := with(t)
	tx, err := d.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	first, b := pgtx.Session{}, &pgx.Batch{}
	store.Mark(b, event("a", "o1"), false, &first)
	if err := tx.SendBatch(t.Context(), b).Close(); err != nil || first.PID == 0 {
		t.Fatalf("the first is not marked, %v", err)
	}
	for id, want := range map[string]bool{"b o1": false, "c o2": true} {
		name, key, _ := strings.Cut(id, " ")
		if got := d.marked(func(b *pgx.Batch, s *pgtx.Session) { store.Mark(b, event(name, key), false, s) }); got != want {
			t.Errorf("%s: marked is %t, want %t", id, got, want)
		}
	}
}

// What is left of it must not hold it.
func TestAnEventWhoseRowWasDeletedByHandDoesNotWaitForItself(t *testing.T) {
	t.Parallel()
	gone := func(lines ...string) tables {
		d := with(t, lines...)
		d.exec(`delete from idem_events where event = $1`, event("n", "").RowKey())
		return d
	}
	if !gone("n o1 parked").marked(func(b *pgx.Batch, s *pgtx.Session) { store.Mark(b, event("n", "o1"), false, s) }) {
		t.Error("it is not marked")
	}
}
