package store_test

import (
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
		"it is retrying":                      {"n o1 retrying free", false},
		"an earlier one is pending":           {"a o1 pending due", false},
		"an earlier one is parked":            {"a o1 parked", false},
		"an earlier one is held":              {"a o1 parked held", false},
		"an earlier one is done":              {"a o1 done", true},
		"an earlier one is parked and passed": {"a o1 parked free", true},
		"an earlier one is retrying":          {"a o1 retrying free", true},
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

func TestAStoredEventIsMarkedInItsStateAndTurnAndByItsClaimOnly(t *testing.T) {
	t.Parallel()
	type how = store.Stored
	pending := []string{store.Pending}
	each(t, map[string]struct {
		lines  []string
		how    how
		marked bool
	}{
		"it is pending":                       {[]string{"n o1 pending due"}, how{States: pending}, true},
		"it is in another state":              {[]string{"n o1 parked"}, how{States: pending}, false},
		"it is done":                          {[]string{"n o1 done"}, how{States: pending}, false},
		"the claim is its latest":             {[]string{"n o1 pending due claimed"}, how{States: pending, Claim: 1}, true},
		"the claim is an earlier one":         {[]string{"n o1 pending due claimed"}, how{States: pending, Claim: 2}, false},
		"an earlier one waits":                {[]string{"a o1 parked", "n o1 pending due"}, how{States: pending}, false},
		"a later one waits":                   {[]string{"n o1 pending due", "z o1 pending"}, how{States: pending}, true},
		"an earlier one of another lane":      {[]string{"a o2 parked", "n o1 pending due"}, how{States: pending}, true},
		"it is retrying, in no lane":          {[]string{"n o1 retrying free"}, how{States: []string{store.Retrying}}, true},
		"it is free, and one of the lane not": {[]string{"a o1 parked", "n o1 retrying free"}, how{States: []string{store.Retrying}}, false},
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
	d := with(t, "a o1 pending due", "b o2 pending due")
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
			store.MarkStored(b, event(id, key), store.Stored{States: []string{store.Pending}}, s)
		}); got != want {
			t.Errorf("%s: marked is %t, want %t", id, got, want)
		}
	}
}

func TestANewEventIsHeldInTheStateOfTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	each(t, map[string]struct {
		before string
		held   store.Held
		want   []string
	}{
		"behind a parked one":  {"a o1 parked", store.Held{By: "a", State: store.Parked}, []string{"a o1 parked", "n o1 parked held"}},
		"behind a held one":    {"a o1 parked held", store.Held{By: "a", State: store.Parked}, []string{"a o1 parked held", "n o1 parked held"}},
		"behind a pending one": {"a o1 pending due", store.Held{By: "a", State: store.Pending}, []string{"a o1 pending due", "n o1 pending due"}},
		"behind none":          {"a o2 parked", store.Held{}, []string{"a o2 parked"}},
		"it is stored":         {"n o1 done", store.Held{}, []string{"n o1 done"}},
	}, func(t *testing.T, c struct {
		before string
		held   store.Held
		want   []string
	},
	) {
		d := with(t, c.before)
		if got, err := store.HoldNew(t.Context(), d, event("n", "o1")); got != c.held || err != nil {
			t.Errorf("held is %+v, %v, want %+v", got, err, c.held)
		}
		d.want(c.want...)
	})
}

// One that is parked here as if it had failed, and not as held, would not go on with the others of its entity.
func TestAStoredEventIsHeldInTheStateOfTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	each(t, map[string]struct {
		before []string
		held   store.Held
		want   []string
	}{
		"behind a parked one":         {[]string{"a o1 parked", "n o1 retrying free"}, store.Held{By: "a", State: store.Parked}, []string{"a o1 parked", "n o1 parked held"}},
		"behind a pending one":        {[]string{"a o1 pending due", "n o1 retrying free"}, store.Held{By: "a", State: store.Pending}, []string{"a o1 pending due", "n o1 pending due"}},
		"it had no handler":           {[]string{"a o1 parked", "n o1 unhandled free"}, store.Held{By: "a", State: store.Parked}, []string{"a o1 parked", "n o1 parked held"}},
		"before a parked one":         {[]string{"n o1 retrying free", "a o1 parked"}, store.Held{}, []string{"a o1 parked", "n o1 retrying free"}},
		"behind one that is free":     {[]string{"a o1 retrying free", "n o1 retrying free"}, store.Held{}, []string{"a o1 retrying free", "n o1 retrying free"}},
		"behind another entity's":     {[]string{"a o2 parked", "n o1 retrying free"}, store.Held{}, []string{"a o2 parked", "n o1 retrying free"}},
		"it is done by somebody":      {[]string{"a o1 parked", "n o1 done"}, store.Held{}, []string{"a o1 parked", "n o1 done"}},
		"it waits in an inbox by now": {[]string{"a o1 parked", "n o1 pending due"}, store.Held{}, []string{"a o1 parked", "n o1 pending due"}},
	}, func(t *testing.T, c struct {
		before []string
		held   store.Held
		want   []string
	},
	) {
		d := with(t, c.before...)
		if got, err := store.Hold(t.Context(), d, event("n", "o1")); got != c.held || err != nil {
			t.Errorf("held is %+v, %v, want %+v", got, err, c.held)
		}
		d.want(c.want...)
	})
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
	d := gone("n o1 parked")
	if got, err := store.HoldNew(t.Context(), d, event("n", "o1")); got != (store.Held{}) || err != nil {
		t.Errorf("held is %+v, %v, want none", got, err)
	}
	d = gone("a o1 parked", "n o1 pending due")
	if got, err := store.HoldNew(t.Context(), d, event("n", "o1")); got.By != "a" || err != nil {
		t.Errorf("held is %+v, %v, want by a", got, err)
	}
	d.want("a o1 parked", "n o1 parked held")
}
