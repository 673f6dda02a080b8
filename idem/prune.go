package idem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Prune forgets the source's done, unhandled and discarded events that arrived
// longer ago than Retention, by the database's clock, with their payloads, and
// returns how many. Pending and retrying ones stay, and parked ones until they are
// replayed or discarded, unless ParkedRetention is set. PayloadRetention deletes
// kept bodies before that, and AuditRetention old entries of the audit trail. Prune also repairs the traces of events that were deleted by hand, and
// makes retrying events unhandled if their type is ignored since.
//
// A jump of the clock forgets nothing at once. Prune counts the events of each day, in
// UTC, and remembers the counts. It forgets a whole day, Retention after its end by the clock of
// an earlier run, at least 23 hours ago: so the first run forgets nothing, and an event stays up
// to three days longer than Retention. A day that is over and suddenly has more events got
// them while the clock was wrong: they are forgotten Retention after Prune has found
// that. While the clock is behind that of the last run, Prune returns an error.
//
// It reads the tables twice from end to end (there is no index for it, because
// every delivery would pay for that), a megabyte at a time, each committed on
// its own, and waits for no delivery: run it daily from any process. After it an
// event that comes again would run again: it returns an error if Retention is shorter than 31
// days, unless AllowProcessingTwice is set.
func (c *Common) Prune(ctx context.Context) (deleted int64, err error) {
	p, err := c.planPrune(ctx)
	if err != nil {
		return 0, err
	}
	deleted, err = c.prune(ctx, p)
	if err == nil {
		err = c.endIgnored(ctx)
	}
	if err != nil {
		return deleted, fmt.Errorf("idem: pruning events: %w", explain(err))
	}
	return deleted, nil
}

// endIgnored makes retrying events unhandled if their type is ignored since: when the
// provider delivers them again, that is not looked up.
func (c *Common) endIgnored(ctx context.Context) error {
	source := c.source.Name()
	types, err := timed(ctx, func(ctx context.Context) ([]string, error) { return store.RetryingTypes(ctx, c.pool, source) })
	if err != nil {
		return err
	}
	types = slices.DeleteFunc(types, func(t string) bool { return !c.ignores(Event{Type: t}) })
	if len(types) == 0 {
		return nil
	}
	_, err = timed(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, store.EndRetrying(ctx, c.pool, source, types)
	})
	return err
}

// DryPrune counts the events that [Common.Prune] would forget now. It reads all
// of idem_events, as that does.
func (c *Common) DryPrune(ctx context.Context) (int64, error) {
	p, err := c.planPrune(ctx)
	return p.events, err
}

// checkRetention finds a Retention that has events processed twice.
func (c *Common) checkRetention() error {
	switch {
	case c.Retention <= 0:
		return errors.New("idem: Retention is zero or less: every event would be forgotten")
	case c.Retention < minRetention && !c.AllowProcessingTwice:
		return fmt.Errorf("idem: Retention is %s, and an event that is delivered again after that is processed again: "+
			"set %d days or more, or AllowProcessingTwice if that is meant", c.Retention, minRetention/(24*time.Hour))
	}
	return nil
}

// prunePlan holds the rows that a run of Prune deletes, and those that it remembers.
type prunePlan struct {
	runs                    store.PruneRuns
	closed, parked, archive []time.Time // the days of arrival of events and bodies to delete
	counted                 map[time.Time]store.DayOf
	events                  int64 // that go
}

const (
	day = 24 * time.Hour

	// runsApart is the least time between two runs of which the later one may forget events that the earlier one found
	// old. It is less than a day, for daily runs.
	runsApart = 23 * time.Hour

	// clockStep is the time by which a clock may be set back in daily life.
	clockStep = time.Hour
)

// planPrune counts the events, and finds those to forget.
func (c *Common) planPrune(ctx context.Context) (p prunePlan, err error) {
	if err := c.checkRetention(); err != nil {
		return p, err
	}
	var now time.Time
	source := c.source.Name()
	_, err = timed(ctx, func(ctx context.Context) (struct{}, error) {
		p.runs, now, err = store.FindPruneRuns(ctx, c.pool, source)
		return struct{}{}, err
	})
	if err == nil && now.Before(p.runs.RanAt.Add(-clockStep)) {
		return p, fmt.Errorf("idem: pruning events: the database's clock is at %s, and was at %s when Prune ran last: set the clock; "+
			"if it is right now, delete from idem_prunes where source = '%s'", now.UTC().Format(time.RFC3339), p.runs.RanAt.UTC().Format(time.RFC3339), source)
	}
	if err == nil {
		p.counted, err = store.CountDays(ctx, c.pool, source)
	}
	if err != nil {
		return p, fmt.Errorf("idem: counting events to prune: %w", explain(err))
	}
	p.choose(now, c.Retention, c.ParkedRetention, c.PayloadRetention)
	return p, nil
}

// choose finds the rows to forget at now, and those that this run is to remember.
func (p *prunePlan) choose(now time.Time, retention, parkedRetention, payloadRetention time.Duration) {
	was := p.runs
	p.runs = store.PruneRuns{Runs: was.Runs + 1, RanAt: was.RanAt, Before: was.Before, Days: map[string]store.PrunedDay{}}
	if now.Sub(was.RanAt) >= runsApart {
		p.runs.RanAt, p.runs.Before = now, was.RanAt
	}
	for begin, n := range p.counted {
		name, end := begin.Format(time.DateOnly), begin.Add(day)
		late := was.Days[name].LateAt
		if was.Runs > 0 && n.Events > was.Days[name].Events && !end.After(was.RanAt) {
			late = now
		}
		forget := func(after time.Duration) bool {
			return after > 0 && !end.After(p.runs.Before.Add(-after)) && !late.After(p.runs.Before.Add(-after))
		}
		left := n.Events
		if forget(retention) {
			p.closed, left = append(p.closed, begin), left-n.Closed
		}
		if forget(parkedRetention) {
			p.parked, left = append(p.parked, begin), left-n.Parked
		}
		if forget(payloadRetention) {
			p.archive = append(p.archive, begin)
		}
		p.events += n.Events - left
		p.runs.Days[name] = store.PrunedDay{Events: left, LateAt: late}
	}
}

// prune remembers the counts and deletes. Another run at the same time ends one of both.
func (c *Common) prune(ctx context.Context, p prunePlan) (deleted int64, err error) {
	source := c.source.Name()
	save := func(r store.PruneRuns) (bool, error) {
		return timed(ctx, func(ctx context.Context) (bool, error) { return store.SavePruneRuns(ctx, c.pool, source, r) })
	}
	if saved, err := save(p.runs); err != nil || !saved {
		return 0, err
	}
	if p.events > 0 {
		gone, err := store.PruneEvents(ctx, c.pool, source, p.closed, p.parked)
		for begin, n := range p.counted { // locked rows stay for the next run
			deleted += gone[begin]
			d := p.runs.Days[begin.Format(time.DateOnly)]
			d.Events = n.Events - gone[begin]
			p.runs.Days[begin.Format(time.DateOnly)] = d
		}
		p.runs.Runs++
		if _, saving := save(p.runs); err != nil || saving != nil {
			return deleted, errors.Join(err, saving)
		}
	}
	if err := store.PruneArchive(ctx, c.pool, source, p.archive); err != nil {
		return deleted, err
	}
	if err := c.pruneAudit(ctx, p.runs.Before); err != nil {
		return deleted, err
	}
	_, err = timed(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, store.Tidy(ctx, c.pool, source) })
	return deleted, err
}

// pruneAudit deletes old entries of the audit trail by the clock of an earlier run, which is zero if
// there was none.
func (c *Common) pruneAudit(ctx context.Context, clock time.Time) error {
	if c.AuditRetention <= 0 || clock.IsZero() {
		return nil
	}
	_, err := timed(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, store.PruneAudit(ctx, c.pool, c.source.Name(), clock.Add(-c.AuditRetention))
	})
	if pgtx.SQLState(err) == "42501" { // the role may only add to the trail, on purpose
		return nil
	}
	return err
}
