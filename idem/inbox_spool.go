package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/spool"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/internal/wire"
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
	direct, open := i.Spool.keeper.Enter(half)
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
	first := i.Spool.keeper.Shut()
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
	case errors.Is(err, spool.ErrBehind):
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

// attach makes the spool that of one inbox. Two would store each other's events.
func (s *Spool) attach(i *Inbox) error {
	if !s.keeper.Attach(inboxSink{i}) {
		return errors.New("the spool is another inbox's: open one for each, with a directory of its own")
	}
	return nil
}

// put keeps an event. The error is [spool.ErrBehind] if the spool may have earlier events
// of its entity.
func (s *Spool) put(ctx context.Context, e store.Incoming) error {
	return s.keeper.Put(ctx, e.Lane(), func() ([]byte, error) { return wire.EncodeRecord(e, time.Now()) })
}

// scan finds the files that another process has left in the directory, and has them drained.
func (s *Spool) scan(i *Inbox) {
	if s.attach(i) == nil {
		s.keeper.Scan()
	}
}

// scanSpoolEveryMinute has the spool drained of files that other processes leave there, the
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
	tried := i.Spool.keeper.NextTry()
	i.Spool.scan(i)
	if shut, _ := i.Spool.keeper.State(); !shut {
		return nil
	}
	select {
	case <-tried:
	case <-ctx.Done():
		return ctx.Err()
	}
	if shut, err := i.Spool.keeper.State(); shut {
		return fmt.Errorf("idem: draining the spool: %w", err)
	}
	return nil
}
