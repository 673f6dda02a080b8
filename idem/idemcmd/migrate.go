package idemcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/paghooks/paghooks/idem"
)

// migrate applies missing migrations, or lists them.
func (p *program) migrate(ctx context.Context) error {
	missing, err := idem.MissingMigrations(ctx, p.pool)
	if err != nil {
		return err
	}
	if !p.dryRun {
		if err := idem.Migrate(ctx, p.pool); err != nil {
			return err
		}
	}
	if len(missing) == 0 && !p.json {
		_, err := fmt.Fprintln(p.Stdout, "All migrations are applied.")
		return err
	}
	did := "applied"
	if p.dryRun {
		did = "missing"
	}
	for _, file := range missing {
		if p.json {
			err = p.printLine(struct {
				Migration string `json:"migration"`
				DryRun    bool   `json:"dry_run"`
			}{file, p.dryRun})
		} else {
			_, err = fmt.Fprintf(p.Stdout, "%s: %s\n", did, file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printMigrations prints them, to be run by hand.
func (p *program) printMigrations() error {
	files, err := idem.Migrations.ReadDir("migrations")
	for _, f := range files {
		statements, reading := idem.Migrations.ReadFile("migrations/" + f.Name())
		_, writing := p.Stdout.Write(statements)
		err = errors.Join(err, reading, writing)
	}
	return err
}
