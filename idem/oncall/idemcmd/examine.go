package idemcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// healthURL is the variable of the environment that has the addresses of programs' health.
const healthURL = "IDEM_HEALTH_URL"

// doctor prints what is wrong.
func (p *program) doctor(ctx context.Context) error {
	found, err := p.findings(ctx)
	if err != nil {
		return err
	}
	wrong, hidden := 0, 0
	for _, f := range found {
		switch {
		case f.Severity != doctor.Info:
			wrong++
		case !p.all:
			hidden++
			continue
		}
		if p.json {
			err = p.printLine(p.printed(f))
		} else {
			err = p.printFinding(f)
		}
		if err != nil {
			return err
		}
	}
	if wrong == 0 && !p.json {
		_, err = fmt.Fprintln(p.Stdout, p.allIsWell())
	}
	if hidden > 0 && !p.json {
		fmt.Fprintf(p.Stdout, "Hints, and what this role may not see: %d more with idem doctor -all.\n", hidden)
	}
	if wrong > 0 {
		return command.Said(command.Attention)
	}
	return err
}

func (p *program) allIsWell() string {
	if len(p.healths()) > 0 {
		return "All is well."
	}
	return "All is well in the database. Refused deliveries, and the provider's queue, show in the report of the program: idem doctor -health URL."
}

// healths returns the addresses of programs' health.
func (p *program) healths() []string {
	if p.health != nil {
		return p.health
	}
	return strings.Fields(os.Getenv(healthURL))
}

// findings returns what is wrong, or good to know.
func (p *program) findings(ctx context.Context) (found []doctor.Finding, err error) {
	if err = p.unreached; err == nil {
		found, err = doctor.Check(ctx, p.pool, p.receivers...)
	}
	switch {
	case ctx.Err() != nil:
		return nil, cmp.Or(err, context.Cause(ctx))
	case errors.Is(err, errRefused):
		found = append(found, doctor.Finding{
			Check: "connection", Severity: doctor.Error, Problem: "the database answers, and refuses this address: nothing is known of the events", Evidence: explain(err),
			Remedy: "correct -database or DATABASE_URL; if it is the application's own address, its deliveries are answered 503 until it is corrected there, too",
		})
	case errors.Is(err, errFull):
		found = append(found, doctor.Finding{
			Check: "connection", Severity: doctor.Error, Problem: "the database has no connection left for this user: deliveries that need a new one are answered 503", Evidence: explain(err),
			Remedy: "see who holds them, as another user, in pg_stat_activity; give the pools of all programs together fewer than max_connections, and than the user's own limit; the providers deliver again what was answered 503",
		})
	case err != nil:
		found = append(found, doctor.Finding{
			Check: "connection", Severity: doctor.Error, Problem: "the database does not answer: deliveries are answered 503, and nothing is processed", Evidence: explain(err),
			Remedy: "see whether Postgres runs, is reached from here, and has connections left; the providers deliver again what was answered 503",
		})
	}
	found = append(found, doctor.CheckWebhooks(ctx, p.Webhooks...)...)
	for _, url := range p.healths() {
		found = append(found, doctor.CheckHealth(ctx, url, found)...)
	}
	doctor.Sort(found)
	return found, nil
}

// printed is a finding as it is printed: a replay that this program refuses is no command of it.
func (p *program) printed(f doctor.Finding) doctor.Finding {
	if p.Receivers == nil && strings.HasPrefix(f.Command, "idem replay ") {
		f.Remedy, f.Command = f.Remedy+": "+f.Command, ""
	}
	return f
}

func (p *program) printFinding(f doctor.Finding) error {
	f = p.printed(f)
	source := ""
	if f.Source != "" {
		source = terminal.Clean(f.Source) + ": "
	}
	_, err := fmt.Fprintf(p.Stdout, "%-7s  %s: %s%s\n", f.Severity, f.Check, source, terminal.Clean(f.Problem))
	for _, line := range [][2]string{{"found", f.Evidence}, {"do", f.Remedy}, {"run", f.Command}} {
		if line[1] != "" {
			_, err = fmt.Fprintf(p.Stdout, "         %s: %s\n", line[0], terminal.Clean(line[1]))
		}
	}
	return err
}

// migrate applies missing migrations, or lists them.
func (p *program) migrate(ctx context.Context) error {
	missing, err := doctor.MissingMigrations(ctx, p.pool)
	if err != nil {
		return err
	}
	if p.again && !p.dryRun {
		if err := p.migrateAgain(ctx); err != nil {
			return err
		}
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

// migrateAgain runs every migration: what is gone comes back, and the rest stays as it is.
func (p *program) migrateAgain(ctx context.Context) error {
	statements, err := migrations()
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `set local lock_timeout = '5s';`+statements)
		return err
	})
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	return nil
}

// printMigrations prints them, to be run by hand.
func (p *program) printMigrations() error {
	statements, err := migrations()
	if err == nil {
		_, err = fmt.Fprint(p.Stdout, statements)
	}
	return err
}

// migrations returns the SQL of all migrations.
func migrations() (statements string, err error) {
	files, err := idem.Migrations.ReadDir("migrations")
	for _, f := range files {
		text, reading := idem.Migrations.ReadFile("migrations/" + f.Name())
		statements += string(text)
		err = errors.Join(err, reading)
	}
	return statements, err
}
