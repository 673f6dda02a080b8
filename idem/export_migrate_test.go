package idem

import (
	"context"
	"io/fs"
	"time"

	"github.com/paghooks/paghooks/idem/internal/migrate"
)

// MigrateFiles is Migrate with the files of another version.
func MigrateFiles(ctx context.Context, db migrate.Beginner, files fs.FS) error {
	return MigrateFilesWithin(ctx, db, files, time.Minute)
}

// MigrateFilesWithin is MigrateFiles that gives up sooner.
func MigrateFilesWithin(ctx context.Context, db migrate.Beginner, files fs.FS, patience time.Duration) error {
	return migrate.Apply(ctx, db, "", files, patience)
}
