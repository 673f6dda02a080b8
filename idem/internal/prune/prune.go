// Package prune decides which events a run of Prune forgets, and deletes them.
//
// A jump of the clock forgets nothing at once: the clock of an earlier run, and the counts of each day in
// earlier runs, decide which events are deleted.
package prune

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Ages are the ages from which rows are deleted; 0 is never.
type Ages struct {
	Events   time.Duration // done, unhandled and discarded events, with their bodies
	Parked   time.Duration // parked events
	Archived time.Duration // bodies of done events
	Actions  time.Duration // entries of the audit trail
}

// Plan holds the rows of a source that a run deletes, and the counts that it remembers.
type Plan struct {
	Events int64 // the number of events to delete

	pool                    *pgxpool.Pool
	source                  string
	ages                    Ages
	runs                    store.PruneRuns
	closed, parked, archive []time.Time // the days of arrival of events and bodies to delete
	counted                 map[time.Time]store.DayOf
}

const (
	day = 24 * time.Hour

	// minBetween is the least time between two runs for the later one to forget events that were old at the
	// earlier one. It is less than a day, for daily runs.
	minBetween = 23 * time.Hour

	// clockStep is the largest step back of a clock that is no error.
	clockStep = time.Hour

	// statementTime is the time that one statement may take. Some read all events that are not done.
	statementTime = 5 * time.Minute
)

// NewPlan counts the events of a source, and finds the ones to forget. It returns an error if the database's
// clock is behind the time of the last run.
func NewPlan(ctx context.Context, pool *pgxpool.Pool, source string, ages Ages) (*Plan, error) {
	p := &Plan{pool: pool, source: source, ages: ages}
	now, err := p.read(ctx)
	if err == nil && p.isAheadOf(now) {
		return nil, fmt.Errorf("the database's clock is at %s, and was at %s when Prune ran last: set the clock; "+
			"if it is right now, delete from idem_prunes where source = '%s'", now.UTC().Format(time.RFC3339), p.runs.RanAt.UTC().Format(time.RFC3339), source)
	}
	if err == nil {
		p.counted, err = store.CountDays(ctx, pool, source)
	}
	if err != nil {
		return nil, err
	}
	p.choose(now)
	return p, nil
}

// read reads the counts of earlier runs, and the database's clock.
func (p *Plan) read(ctx context.Context) (now time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	p.runs, now, err = store.FindPruneRuns(ctx, p.pool, p.source)
	return now, err
}

// isAheadOf reports whether the clock was set back: the last run was at a later time than now.
func (p *Plan) isAheadOf(now time.Time) bool { return now.Before(p.runs.RanAt.Add(-clockStep)) }

// choose finds the rows to forget at now, and the counts that this run is to remember.
func (p *Plan) choose(now time.Time) {
	was := p.runs
	p.runs = store.PruneRuns{Runs: was.Runs + 1, RanAt: was.RanAt, Before: was.Before, Days: map[string]store.PrunedDay{}}
	if now.Sub(was.RanAt) >= minBetween {
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
		if forget(p.ages.Events) {
			p.closed, left = append(p.closed, begin), left-n.Closed
		}
		if forget(p.ages.Parked) {
			p.parked, left = append(p.parked, begin), left-n.Parked
		}
		if forget(p.ages.Archived) {
			p.archive = append(p.archive, begin)
		}
		p.Events += n.Events - left
		p.runs.Days[name] = store.PrunedDay{Events: left, LateAt: late}
	}
}

// Run remembers the counts, deletes, and returns the number of events that it has deleted. If two runs are
// made at the same time, one of them deletes nothing more.
func (p *Plan) Run(ctx context.Context) (deleted int64, err error) {
	if saved, err := p.save(ctx); err != nil || !saved {
		return 0, err
	}
	if p.Events > 0 {
		gone, err := store.PruneEvents(ctx, p.pool, p.source, p.closed, p.parked)
		for begin, n := range p.counted { // locked rows stay for the next run
			deleted += gone[begin]
			d := p.runs.Days[begin.Format(time.DateOnly)]
			d.Events = n.Events - gone[begin]
			p.runs.Days[begin.Format(time.DateOnly)] = d
		}
		p.runs.Runs++
		if _, saving := p.save(ctx); err != nil || saving != nil {
			return deleted, errors.Join(err, saving)
		}
	}
	if err := store.PruneArchive(ctx, p.pool, p.source, p.archive); err != nil {
		return deleted, err
	}
	if err := p.audit(ctx); err != nil {
		return deleted, err
	}
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	return deleted, store.Tidy(ctx, p.pool, p.source)
}

// save writes the counts. It returns false if another run has written some.
func (p *Plan) save(ctx context.Context) (saved bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	return store.SavePruneRuns(ctx, p.pool, p.source, p.runs)
}

// audit deletes old entries of the audit trail, by the clock of an earlier run; none if there was no earlier
// run.
func (p *Plan) audit(ctx context.Context) error {
	if p.ages.Actions <= 0 || p.runs.Before.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	err := store.PruneAudit(ctx, p.pool, p.source, p.runs.Before.Add(-p.ages.Actions))
	if pgtx.SQLState(err) == "42501" { // the role may only add to the trail, on purpose
		return nil
	}
	return err
}
