package idem

import (
	"context"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/migrate"
)

// Waiting returns how many deliveries wait to be stored, those not among them
// that are being stored.
func (i *Inbox) Waiting() int { return i.writer.Waiting() }

// Pool returns the inbox's pool.
func (i *Inbox) Pool() *pgxpool.Pool { return i.pool }

// GoOn goes on with what was held and is no more, as Replay does.
func (p *Processor) GoOn(ctx context.Context) error {
	return (&replaying{common: &p.Common, run: p.replay}).lanes(ctx)
}

// AwaitGoingOn waits until what goes on beside deliveries has ended.
func (p *Processor) AwaitGoingOn() {
	for p.going.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// PathsKept returns the number of paths of refused deliveries that are counted each for itself.
func (in *Endpoint) PathsKept() int { return in.refused.Paths() }

// MigrateFiles is Migrate with the files of another version.
func MigrateFiles(ctx context.Context, db migrate.Beginner, files fs.FS) error {
	return MigrateFilesWithin(ctx, db, files, time.Minute)
}

// MigrateFilesWithin is MigrateFiles that gives up sooner.
func MigrateFilesWithin(ctx context.Context, db migrate.Beginner, files fs.FS, patience time.Duration) error {
	return migrate.Apply(ctx, db, "", files, patience)
}

// WarnOfScopes is warnOfScopes, which Serve calls at the start.
func WarnOfScopes(ctx context.Context, r Receiver) { r.common().warnOfScopes(ctx) }

// Outages says which failures of an outage are logged.
type Outages struct{ outages }

func (o *Outages) Fail(now time.Time) (says bool, more int) { return o.fail(now) }

func (o *Outages) End(now time.Time) (lasted time.Duration, failures int, over bool) {
	return o.end(now)
}
