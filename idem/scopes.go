package idem

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// AlwaysScoped reports whether the source gives every event a scope, as a dispatcher does that has
// accounts and no token or secret of its own. Events that are stored without a scope are
// not recognized then when they come again: health is red until they are moved.
func (in *Endpoint) AlwaysScoped() bool {
	s, ok := in.source.(interface{ AlwaysScoped() bool })
	return ok && s.AlwaysScoped()
}

// scopesTime is the time that one look for scopes may take. A program waits for it at its start.
const scopesTime = 5 * time.Second

// checkScopes is called at the start of a program. It returns an error if the program's version before gave
// events no scope, if this one cannot do so any more, and if it is the first: each event that
// comes again would be done again. Where another program may still make such events, or
// where this version has run before, a stop would cost more: that is logged, and health is red.
func (c *Common) checkScopes(ctx context.Context) error {
	if !c.AlwaysScoped() {
		return nil
	}
	remedy := fmt.Sprintf("one that comes again is a new event, and is done twice: stop every process of the source, "+
		"and move them with idem rescope -source %s -account \"\" -to-account THEIR-SCOPE", c.source.Name())
	if c.asksOfScopes(ctx, store.IsUnscoped) {
		return fmt.Errorf("idem: all events of %s are stored without a scope, and this program gives every event one: %s; "+
			"or leave the account without one, with its token or secret where it was", c.source.Name(), remedy)
	}
	if c.asksOfScopes(ctx, store.HasUnscoped) {
		c.logAttrs(ctx, slog.LevelError, "webhook events are stored without a scope, and this program gives every event one: "+remedy,
			[]slog.Attr{slog.String("source", c.source.Name())})
	}
	return nil
}

// warnOfScopes logs at the start of a program that a source has events both with and
// without a scope: that is right only where one account has no scope on purpose.
func (c *Common) warnOfScopes(ctx context.Context) {
	if c.AlwaysScoped() { // checkScopes has said so
		return
	}
	if !c.asksOfScopes(ctx, store.HasMixedScopes) {
		return
	}
	c.logAttrs(ctx, slog.LevelWarn, "webhook events are stored with and without a scope: unless one account has none on purpose, "+
		"those of before that come again are done twice: stop the program, and move them with idem rescope",
		[]slog.Attr{slog.String("source", c.source.Name())})
}

// asksOfScopes asks Postgres a question. Without an answer the result is false: without tables or
// Postgres, others say so.
func (c *Common) asksOfScopes(ctx context.Context, question func(context.Context, store.DB, string) (bool, error)) (yes bool) {
	ctx, cancel := context.WithTimeout(ctx, scopesTime)
	defer cancel()
	_ = pgtx.Protect(func() (err error) { // hooks of the pool are the application's
		yes, err = ask(ctx, c.pool, func(ctx context.Context, db store.DB) (bool, error) {
			return question(ctx, db, c.source.Name())
		})
		return err
	})
	return yes
}
