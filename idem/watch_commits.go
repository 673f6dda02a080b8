package idem

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// WatchCommits has a pool notice commits after a wait for the synchronous replica that was
// canceled by somebody else, with pg_cancel_backend. Postgres reports success for them
// all the same, though a promoted replica may lack them. With it they are [Unknown], and
// are not acknowledged:
//
//	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
//	…
//	idem.WatchCommits(config)
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//
// It chains the AfterConnect and OnNotice of config.ConnConfig: set your own before. A
// pool needs it only where synchronous_standby_names is set.
//
// See https://www.postgresql.org/docs/current/warm-standby.html#SYNCHRONOUS-REPLICATION.
func WatchCommits(config *pgxpool.Config) { pgtx.WatchCommits(config) }
