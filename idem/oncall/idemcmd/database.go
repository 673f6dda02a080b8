package idemcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// open connects to the database and makes an operator for each source.
func (p *program) open(ctx context.Context, v *verb) (err error) {
	address := cmp.Or(p.database, os.Getenv("DATABASE_URL"))
	if p.pool, err = connect(ctx, address, p.schema); err != nil {
		return err
	}
	if v.acts || address == "" {
		err = p.sayDatabase(ctx, address == "")
	}
	if err == nil {
		err = p.openSources(ctx, v)
	}
	if err != nil {
		p.pool.Close()
	}
	return err
}

// connectTime limits the wait for a database that does not answer.
const connectTime = 10 * time.Second

// connect connects to the database; schema, unless it is "", is all of the search_path.
func connect(ctx context.Context, url, schema string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil { // which would show the address
		return nil, command.Usage("the address of the database is not understood: write it as postgres://user@host:5432/database, its parts percent-encoded, in DATABASE_URL or -database")
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "idem"
	}
	if schema != "" {
		config.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
	}
	idem.WatchCommits(config)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err == nil {
		connecting, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		if err = pool.Ping(connecting); err != nil {
			pool.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the database does not answer: %w", err)
	}
	return pool, nil
}

// sayDatabase prints the database and the schema of the tables, without the password.
func (p *program) sayDatabase(ctx context.Context, isGuessed bool) error {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	defer conn.Release()
	var database, user, schema string
	err = conn.QueryRow(ctx, `select current_database(), current_user, coalesce(
		(select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass('idem_events')), current_schema(), '')`).
		Scan(&database, &user, &schema)
	if err != nil {
		return fmt.Errorf("asking which database this is: %w", err)
	}
	guessed := ""
	if isGuessed {
		guessed = "DATABASE_URL is not set: "
	}
	p.tell("%sdatabase %s at %s, user %s, schema %s", guessed, strconv.Quote(database), terminal.Clean(hostOf(conn.Conn())), strconv.Quote(user), strconv.Quote(schema))
	return nil
}

// hostOf returns the host and the port of a connection; of several that the address names, the IP
// address of the one that it has.
func hostOf(conn *pgx.Conn) string {
	config := conn.Config()
	for _, other := range config.Fallbacks {
		if other.Host != config.Host || other.Port != config.Port {
			return conn.PgConn().Conn().RemoteAddr().String()
		}
	}
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
}

func (p *program) openSources(ctx context.Context, v *verb) error {
	receivers, err := p.makeReceivers(ctx, v)
	if err != nil {
		return err
	}
	who := p.as
	if v.audited && who == "" {
		who = whoami()
	}
	var names []string
	for _, r := range receivers {
		o := operator.New(r, who)
		name := o.SourceName()
		if slices.Contains(names, name) {
			return fmt.Errorf("the program has two receivers of %s: give idemcmd.Main one of them, the Inbox if there is one", name)
		}
		names = append(names, name)
		if p.sources == nil || slices.Contains(p.sources, name) {
			o.Logger = nil // the command prints failures
			p.receivers, p.operators = append(p.receivers, r), append(p.operators, o)
		}
	}
	for _, wanted := range p.sources {
		if !slices.Contains(names, wanted) {
			return fmt.Errorf("%w: there is no source %q, but %s", errNothing, wanted, cmp.Or(strings.Join(names, ", "), "no event is stored at all"))
		}
	}
	return nil
}

// makeReceivers returns the program's receivers, or one for each stored source if the program has none.
func (p *program) makeReceivers(ctx context.Context, v *verb) (all []idem.Receiver, err error) {
	if p.Receivers != nil {
		for _, receiver := range p.Receivers {
			all = append(all, receiver(p.pool))
		}
		return all, nil
	}
	sources, err := store.Sources(ctx, p.pool)
	switch {
	case err != nil && v.noTables:
		return nil, nil
	case isNoTable(err):
		return nil, fmt.Errorf("the tables are not there: run idem migrate, or see that the search_path is the application's: %w", err)
	case err != nil:
		return nil, fmt.Errorf("listing the sources: %w", err)
	}
	for _, name := range sources {
		all = append(all, idem.NewInbox(p.pool, &stored{name: name}))
	}
	return all, nil
}

// stored is a source of which only the name is known.
type stored struct {
	idem.Routes
	name string
}

func (s *stored) Name() string { return s.name }

func (s *stored) Open(*http.Request) (idem.Event, error) {
	return idem.Event{}, &idem.Refusal{Source: s.name, Reason: idem.ReasonNotConfigured, Hint: "the command idem receives nothing"}
}

// whoami is user@host, for the audit trail.
func whoami() string {
	name := cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME"), fmt.Sprintf("uid %d", os.Getuid()))
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

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

// doctor prints its findings.
func (p *program) doctor(ctx context.Context) error {
	findings, err := doctor.Check(ctx, p.pool, p.receivers...)
	if err != nil {
		return err
	}
	findings = append(doctor.CheckWebhooks(ctx, p.Webhooks...), findings...)
	var errorsFound int
	for _, f := range findings {
		if f.Severity == doctor.Error {
			errorsFound++
		}
		if p.json {
			err = p.printLine(f)
		} else {
			err = p.printFinding(f)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case errorsFound > 0:
		return command.Said(command.Attention)
	case !p.json && len(findings) == 0:
		_, err = fmt.Fprintln(p.Stdout, "All is well.")
	}
	return err
}

func (p *program) printFinding(f doctor.Finding) error {
	source := ""
	if f.Source != "" {
		source = terminal.Clean(f.Source) + ": "
	}
	_, err := fmt.Fprintf(p.Stdout, "%-7s  %s: %s%s\n", f.Severity, f.Check, source, f.Problem)
	if f.Evidence != "" {
		_, err = fmt.Fprintf(p.Stdout, "         found: %s\n", terminal.Clean(f.Evidence))
	}
	if f.Remedy != "" {
		_, err = fmt.Fprintf(p.Stdout, "         do: %s\n", terminal.Clean(f.Remedy))
	}
	return err
}
