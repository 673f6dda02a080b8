package idem

import (
	"context"
	"io/fs"
)

// MigrateFiles is Migrate with the files of another version.
func MigrateFiles(ctx context.Context, db beginner, files fs.FS) error {
	return migrate(ctx, db, "", files)
}
