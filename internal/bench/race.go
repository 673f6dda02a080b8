package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// race lets all contenders take turns, and compares the ledgers at the end. A
// report without an error may still say that a ledger is wrong; after an error
// it is nil or has the results until then.
func race(ctx context.Context, c *config, progress io.Writer) (r *report, err error) {
	start := time.Now()
	var d *database
	if c.needsPostgres() {
		if d, err = openDatabase(ctx, c.postgres); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, d.close()) }()
		fmt.Fprintf(progress, "%s, fsync %s, a commit takes %.2f ms\n", d.about.Origin, d.about.Fsync, d.about.Commit)
	}
	all, err := enterAll(ctx, c, d)
	defer func() {
		for _, one := range all {
			err = errors.Join(err, one.end())
		}
	}()
	if err != nil {
		return nil, err
	}
	err = rounds(ctx, c, d, all, progress)
	r = newReport(start, c, d)
	r.Interrupted = ctx.Err() != nil
	for _, one := range all {
		err = errors.Join(err, r.add(context.WithoutCancel(ctx), one))
	}
	r.conclude()
	return r, err
}

func (c *config) needsPostgres() bool {
	return c.ledger != "" || len(c.modes) > 1 || c.modes[0] != against
}

// newRun names a run.
func newRun() string { return fmt.Sprintf("%08x", rand.Uint32()) }

// enterAll makes the contenders. Each has received an event.
func enterAll(ctx context.Context, c *config, d *database) (all []*contender, err error) {
	run := newRun()
	for _, mode := range c.modes {
		one, err := enter(ctx, mode, d, newEvents(run), c)
		if err != nil {
			return all, fmt.Errorf("%s: %w", mode, err)
		}
		all = append(all, one)
		if err := one.tryOut(ctx); err != nil {
			return all, fmt.Errorf("%s does not receive events: see that it runs and, with -against, that its token is in %s: %w", mode, tokenVariable, err)
		}
	}
	return all, nil
}

// tryOut delivers one event, which need not be delivered again.
func (one *contender) tryOut(ctx context.Context) error {
	n := one.numbers.Add(1)
	if err := one.post(ctx, one.events.body(n)); err != nil {
		return err
	}
	one.ledger.book(n)
	one.acknowledged.Add(1)
	return nil
}

// rounds has each contender take its turn in each round, another one first in
// each.
func rounds(ctx context.Context, c *config, d *database, all []*contender, progress io.Writer) error {
	postmaster := 0
	if d != nil {
		postmaster = d.about.postmaster
	}
	for _, one := range all {
		if err := one.warm(ctx, &c.provider, one.upTo(c.warm)); err != nil {
			return err
		}
	}
	for round := range c.rounds {
		var line strings.Builder
		for i := range all {
			one := all[(round+i)%len(all)]
			if ctx.Err() != nil {
				return nil
			}
			before := one.account
			if err := one.turn(ctx, &c.provider, postmaster, c.turn(one, round)); err != nil {
				return err
			}
			fmt.Fprintf(&line, "  %s %.0f/s", one.mode, perSecond(one.account.events-before.events, one.account.answering-before.answering))
		}
		fmt.Fprintf(progress, "round %d of %d:%s  heap %.1f MB\n", round+1, c.rounds, line.String(), megabytes(heapInUse()))
	}
	return nil
}

// turn tells how long a contender's turn lasts.
func (c *config) turn(one *contender, round int) (more func() bool) {
	if c.events > 0 {
		rounds, now := int64(c.rounds), int64(round)
		return one.upTo(c.events*(now+1)/rounds - c.events*now/rounds)
	}
	end := time.Now().Add(c.length / time.Duration(c.rounds))
	return func() bool { return time.Now().Before(end) }
}

// upTo lets so many further events be sent, or a few more.
func (r *receiver) upTo(events int64) (more func() bool) {
	last := r.numbers.Load() + events
	return func() bool { return r.numbers.Load() < last }
}
