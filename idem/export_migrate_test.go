package idem

import (
	"context"
	"io/fs"

	"github.com/paghooks/paghooks/idem/internal/migrate"
)

// MigrateFiles is Migrate with the files of another version.
func MigrateFiles(ctx context.Context, db migrate.Beginner, files fs.FS) error {
	return migrate.Apply(ctx, db, "", files)
}
