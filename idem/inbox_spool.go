package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// storeOrSpool stores an event in Postgres or, if that does not take it, in the spool.
// Whichever is asked first has half of the time.
func (i *Inbox) storeOrSpool(ctx context.Context, e store.Incoming) result {
	s := i.Spool
	if err := s.attach(i); err != nil {
		r := i.storeInPostgres(ctx, e)
		if r.err != nil {
			r.err = errors.Join(r.err, err)
		}
		return r
	}
	half, cancel := context.WithTimeout(ctx, storeTime/2)
	defer cancel()
	var r result // of Postgres
	spoolTime := half
	direct, asked := s.gate.enter(half)
	if asked {
		if r, asked = i.storeUntilShut(half, direct, e); r.err == nil {
			return r
		}
		spoolTime = ctx
	}
	behind, first, err := s.put(spoolTime, e)
	if err == nil {
		if first && r.err != nil {
			i.logAttrs(ctx, slog.LevelWarn, "webhook events go to the spool until Postgres takes them again", []slog.Attr{
				slog.String("source", e.Source), slog.String("error", r.err.Error()),
			})
		}
		return result{outcome: Spooled}
	}
	err = fmt.Errorf("the spool cannot keep the event: %w", err)
	switch {
	case behind: // it must not pass the earlier ones
		return result{outcome: Retrying, err: fmt.Errorf("%w; and it holds earlier events of the entity", errors.Join(r.err, err))}
	case !asked:
		if r = i.storeInPostgres(ctx, e); r.err == nil {
			return r
		}
	}
	r.err = errors.Join(r.err, err)
	return r
}

// storeUntilShut stores an event in Postgres, and stops waiting for it when the gate is
// shut. asked is false then: Postgres may yet be asked when the spool has failed.
func (i *Inbox) storeUntilShut(ctx, direct context.Context, e store.Incoming) (r result, asked bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(direct, cancel)()
	r = i.storeInPostgres(ctx, e)
	return r, direct.Err() == nil
}
