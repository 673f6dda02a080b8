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
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// open connects to the database and makes an operator for each source.
func (p *program) open(ctx context.Context, v *verb) (err error) {
	address := cmp.Or(p.database, os.Getenv("DATABASE_URL"))
	if p.pool, err = connect(ctx, address, p.schema, p.patience); err != nil {
		return err
	}
	if v.acts || address == "" {
		err = p.sayDatabase(ctx, address == "")
	}
	if err == nil {
		needs := "idem_"
		if (v.name == "stop" || v.name == "audit") && p.Receivers != nil { // an action that waits for a lock can be stopped
			needs = "idem_audit"
		}
		err = store.AwaitTables(ctx, p.pool, needs, lockTime, v.acts)
	}
	if v.noTables && errors.As(err, new(*store.LockedError)) { // which is what doctor says, and migrate waits for
		return nil
	}
	if err == nil && v.acts {
		if err = p.awaited(ctx); err != nil {
			err = fmt.Errorf("nothing was changed: %w", err)
		}
	}
	if err == nil {
		err = p.openSources(ctx, v)
	}
	if err != nil {
		closePool(p.pool)
	}
	return err
}

// closePool closes a pool. It waits for a server that does not answer no longer than a person does after Ctrl-C.
func closePool(pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Second):
	}
}

const (
	patience = 10 * time.Second // with a database, until it has answered what is asked first
	lockTime = 3 * time.Second  // that others may keep the tables locked
)

// The errors of a database that is not reached.
var (
	errNoAnswer = errors.New("the database does not answer")
	errFull     = errors.New("the database answers, and has no connection left for this user")
	errRefused  = errors.New("the database answers, and refuses the user, the password, the database or a parameter of this address")
)

// connect connects to the database; schema, unless it is "", is all of the search_path.
func connect(ctx context.Context, url, schema string, patience time.Duration) (*pgxpool.Pool, error) {
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
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error { // times are printed in UTC as JSON
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
		return nil
	}
	idem.WatchCommits(config)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err == nil {
		connecting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err = pool.Ping(connecting); err != nil {
			closePool(pool)
		}
	}
	switch state := pgtx.SQLState(err); {
	case err == nil:
		return pool, nil
	case strings.HasPrefix(state, "28"), strings.HasPrefix(state, "3D"), state == "08P01": // the user, the password, the database, a pooler's parameter
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	case state == "53300": // too_many_connections
		return nil, fmt.Errorf("%w: %w", errFull, err)
	}
	return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
}

// sayDatabase prints the database and the schema of the tables, without the password.
func (p *program) sayDatabase(ctx context.Context, isGuessed bool) error {
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
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
			return fmt.Errorf("the program has two receivers of %s: give idemcmd.Main one of them", name)
		}
		names = append(names, name)
		if p.sources == nil || slices.Contains(p.sources, name) {
			o.Inbox.Logger = nil // the command prints failures
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
	asking, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	sources, err := store.Sources(asking, p.pool)
	switch {
	case err != nil && v.noTables:
		return nil, nil
	case err != nil && asking.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("%w: listing the sources: %w", errNoAnswer, err)
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
