package idem

import (
	"context"
	"log/slog"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// scopesTime is the time that a look for scopes may take.
const scopesTime = 10 * time.Second

// warnOfScopes logs at the start of a program that a source has events both with and
// without a scope: that is right only where one account has no scope on purpose.
func warnOfScopes(ctx context.Context, c *Common) {
	ctx, cancel := context.WithTimeout(ctx, scopesTime)
	defer cancel()
	var mixed bool
	err := pgtx.Protect(func() (err error) { // hooks of the pool are the application's
		mixed, err = ask(ctx, c.pool, func(ctx context.Context, db store.DB) (bool, error) {
			return store.HasMixedScopes(ctx, db, c.source.Name())
		})
		return err
	})
	if err != nil || !mixed { // without tables or Postgres, others say so
		return
	}
	c.logAttrs(ctx, slog.LevelWarn, "webhook events are stored with and without a scope: unless one account has none on purpose, "+
		"those of before that come again are done twice: stop the program, and move them with idem rescope",
		[]slog.Attr{slog.String("source", c.source.Name())})
}
