package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// storeOrSpool stores an event in Postgres or, if that does not take it, in the spool.
// While the spool has events it is asked first. Whichever is asked first has half of the
// time.
func (i *Inbox) storeOrSpool(ctx context.Context, e store.Incoming) result {
	if err := i.Spool.attach(i); err != nil {
		return i.storeUnspooled(ctx, e, err)
	}
	half, cancel := context.WithTimeout(ctx, storeTime/2)
	defer cancel()
	direct, open := i.Spool.gate.enter(half)
	if !open {
		return i.spoolOrStore(ctx, half, e)
	}
	r := i.storeUntilShut(half, direct, e)
	switch {
	case r.err == nil:
		return r
	case direct.Err() != nil: // another delivery shut the gate: this one may not have waited for Postgres
		return i.spoolOrStore(ctx, ctx, e)
	case pgtx.Held(r.err): // Postgres takes the others
		return r
	}
	first := i.Spool.gate.shut()
	if err := i.Spool.put(ctx, e); err != nil {
		return result{outcome: Retrying, err: errors.Join(r.err, err)}
	}
	if first {
		i.logAttrs(ctx, slog.LevelWarn, "webhook events go to the spool until Postgres takes them again", []slog.Attr{
			slog.String("source", e.Source), slog.String("error", r.err.Error()),
		})
	}
	return result{outcome: Spooled}
}

// storeUntilShut stores an event in Postgres, and stops waiting for it when the gate is
// shut, which ends direct.
func (i *Inbox) storeUntilShut(ctx, direct context.Context, e store.Incoming) result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(direct, cancel)()
	return i.storeInPostgres(ctx, e)
}

// spoolOrStore keeps an event in the spool, which has until spoolTime ends, or stores it
// in Postgres, unless it would pass earlier ones.
func (i *Inbox) spoolOrStore(ctx, spoolTime context.Context, e store.Incoming) result {
	err := i.Spool.put(spoolTime, e)
	switch {
	case err == nil:
		return result{outcome: Spooled}
	case errors.Is(err, errBehind):
		return result{outcome: Retrying, err: err}
	}
	return i.storeUnspooled(ctx, e, err)
}

// storeUnspooled stores an event in Postgres that the spool does not take because of
// cause.
func (i *Inbox) storeUnspooled(ctx context.Context, e store.Incoming, cause error) result {
	r := i.storeInPostgres(ctx, e)
	if r.err != nil {
		r.err = errors.Join(r.err, cause)
	}
	return r
}

// scanSpoolEveryMinute has the spool drained of what other processes leave there, the
// first time at once, until ctx ends.
func (i *Inbox) scanSpoolEveryMinute(ctx context.Context) {
	if i.Spool == nil {
		return
	}
	for ok := true; ok; ok = sleep(ctx, time.Minute) {
		i.Spool.scan(i)
		if err := i.Spool.dir.Faults().Write; err != nil {
			i.logError(ctx, "webhook spool cannot keep events: see that its directory can be written to, and that there is room", Event{}, err)
		}
	}
}

// awaitSpool waits until the spool is empty, or could not be drained.
func (i *Inbox) awaitSpool(ctx context.Context) error {
	if i.Spool == nil {
		return nil
	}
	tried := i.Spool.gate.nextTry()
	i.Spool.scan(i)
	if shut, _ := i.Spool.gate.state(); !shut {
		return nil
	}
	select {
	case <-tried:
	case <-ctx.Done():
		return ctx.Err()
	}
	if shut, err := i.Spool.gate.state(); shut {
		return fmt.Errorf("idem: draining the spool: %w", err)
	}
	return nil
}
