package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/diagnosis"
	"github.com/paghooks/paghooks/idem/internal/inside"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/internal/lang"
)

// Part is a part of a program that says how it is: an [*idem.Inbox], an outbox, a relay, a canary, or one of the
// application's own. Examine may be called from many goroutines. It should end with ctx.
type Part interface {
	Examine(ctx context.Context, limits check.Limits) []check.Result
}

// Of returns a part that reports how a receiver is: its Postgres, its deliveries, its stored
// events and its workers. [New] does that with each receiver. Call it in a part of the
// application's own that answers for a receiver, and keep the result: it remembers the rows that it
// has read.
func Of(r idem.Receiver) Part {
	in := inside.Of[stored](r)
	return &receiver{own: r, in: in, inbox: in.Inbox()}
}

// stored is the inside of a receiver.
type stored interface {
	Inbox() *idem.Inbox
	Pool() *pgxpool.Pool
	AlwaysScoped() bool
}

// receiver is the part of a receiver.
type receiver struct {
	own   idem.Receiver
	in    stored
	inbox *idem.Inbox

	events   lastLook[store.Snapshot] // reads all that is not done
	unscoped lastLook[bool]
}

// Examine implements [Part].
func (r *receiver) Examine(ctx context.Context, limits check.Limits) []check.Result {
	x := &examination{pool: r.in.Pool(), inbox: r.inbox, limits: limits}
	x.reached = x.examinePostgres(ctx, store.NeededRights(r.inbox.KeepPayloads))
	if own, ok := r.own.(Part); ok {
		x.checks = append(x.checks, own.Examine(ctx, limits)...)
	}
	r.examineEvents(ctx, x)
	if r.in.AlwaysScoped() {
		r.examineScopes(ctx, x)
	}
	return x.checks
}

// enough is the number of events that are looked at where Postgres takes longer than Timeout to look at all.
const enough store.Most = 100_000

// examineEvents adds the checks of the stored events.
func (r *receiver) examineEvents(ctx context.Context, x *examination) {
	names := x.ofEvents()
	s, unknown := look(x, &r.events, func() (s store.Snapshot, err error) {
		for _, most := range []store.Most{0, enough} {
			if s, err = x.snapshot(ctx, most); !pgtx.Canceled(err) {
				break
			}
		}
		return s, err
	})
	if unknown != "" {
		for _, name := range names {
			x.add(check.Result{Name: name, Healthy: true, Unknown: true, Says: unknown})
		}
		return
	}
	of := diagnosis.Source{Name: x.inbox.SourceName(), Snapshot: s, Limits: x.limits, Timeout: x.inbox.Timeout}
	found := of.Findings(lang.English)
	for _, name := range names {
		c := resultOf(name, found)
		switch name {
		case "failing":
			c.Count, c.Says = new(s.Failing.Events), c.Says+known(s.Failing.Known)
		case "parked":
			c.Count, c.Says = new(s.Parked.Events), c.Says+known(s.Parked.Known)
		case "standing":
			c.Count, c.Says = new(s.Standing.Waiting), c.Says+known(s.Standing.Known)
		}
		if s.Most > 0 && c.Count != nil {
			c.Says += fmt.Sprintf("; so many events are not done, see idem stats, that this is said of %d of them", s.Most)
		}
		x.add(c)
	}
}

// ofEvents returns the names of the checks that the limits leave on.
func (x *examination) ofEvents() (names []string) {
	if x.limits.MaxPending > 0 {
		names = append(names, "workers", "clock")
	}
	if x.limits.MaxFailing > 0 {
		names = append(names, "failing")
	}
	if x.limits.MaxParked > 0 {
		names = append(names, "parked")
	}
	return append(names, "standing")
}

// resultOf returns the result of a check: what was found by it, or that all is well.
func resultOf(name string, found []check.Finding) check.Result {
	for _, f := range found {
		if f.Check == name {
			return check.Result{
				Name: name, Healthy: f.Severity != check.Error, Warning: f.Severity == check.Warning,
				Says: f.Problem, Remedy: f.Remedy, Command: f.Command,
			}
		}
	}
	return check.Result{Name: name, Healthy: true, Says: map[string]string{
		"workers":  "no event waits for workers for long",
		"clock":    "no event arrived in the future",
		"failing":  "no event fails that nobody has acknowledged",
		"parked":   "no event is parked that nobody has acknowledged",
		"standing": "no event waits for a parked one",
	}[name]}
}

// known says how many events are left out of a check.
func known(acknowledged int64) string {
	if acknowledged == 0 {
		return ""
	}
	return fmt.Sprintf("; acknowledged: %d", acknowledged)
}

// snapshot reads what is known of the events. Postgres gives up after Timeout: a connection is not lost because there
// is much to read.
func (x *examination) snapshot(ctx context.Context, most store.Most) (store.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*x.limits.Timeout)
	defer cancel()
	return store.ReadSnapshot(ctx, x.pool, x.inbox.SourceName(), most, x.limits.Timeout)
}

// examineScopes checks that no event is stored without a scope, of a source that gives one to each.
func (r *receiver) examineScopes(ctx context.Context, x *examination) {
	found, unknown := look(x, &r.unscoped, func() (found bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, 2*x.limits.Timeout)
		defer cancel()
		err = pgx.BeginTxFunc(ctx, x.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			if err := store.LimitTime(ctx, tx, x.limits.Timeout); err != nil {
				return err
			}
			found, err = store.HasUnscoped(ctx, tx, x.inbox.SourceName())
			return err
		})
		return found, err
	})
	c := check.Result{Name: "scopes", Healthy: !found || unknown != "", Unknown: unknown != "", Says: unknown}
	switch {
	case !c.Healthy:
		c.Says = "events are stored without a scope, and this program gives every event one: one of before that comes again is done twice"
		c.Remedy = "stop every process of the source, and move them; or give their account's token or secret to the program again, without a scope"
		c.Command = "idem help rescope"
	case unknown == "":
		c.Says = "every stored event has a scope"
	}
	x.add(c)
}

// examination is one look at a receiver.
type examination struct {
	pool    *pgxpool.Pool
	inbox   *idem.Inbox
	limits  check.Limits
	reached bool // whether its Postgres is well
	late    bool // whether a look at the stored events took too long
	checks  []check.Result
}

func (x *examination) add(c check.Result) {
	c.Source = x.inbox.SourceName()
	x.checks = append(x.checks, c)
}

// examinePostgres reports whether the receiver's Postgres answers, and lets it write.
func (x *examination) examinePostgres(ctx context.Context, needs []store.Rights) (well bool) {
	ctx, cancel := context.WithTimeout(ctx, x.limits.Timeout)
	defer cancel()
	var readOnly bool
	var lacks []string
	var hidden string
	var awaited store.Awaited
	err := pgtx.Ask(ctx, x.pool, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		if readOnly, lacks, err = store.FindWritable(ctx, conn, needs); err == nil {
			hidden, err = store.FindHidden(ctx, conn, x.inbox.SourceName())
		}
		if err == nil {
			awaited, err = store.FindAwaited(ctx, conn)
		}
		return err
	})
	c := check.Result{Name: "postgres", Cause: err, Command: "idem doctor"}
	switch {
	case isPooled(err):
		c = pooled(err)
	case err != nil:
		c.Says = fmt.Sprintf("it did not answer within %s: it is unavailable or refuses connections, the network is broken, or all connections of the pool are in use",
			x.limits.Timeout)
		c.Remedy = "see the error in this application's log"
		if locked, ok := x.findLock(err); ok {
			locked.Says = fmt.Sprintf("it did not answer within %s: %s", x.limits.Timeout, locked.Says)
			c = locked
		}
	case readOnly:
		c.Says = "it is read-only: it is a replica, or its transactions are read-only by default, as hosts set it when the disk is full"
		c.Remedy = "connect to the primary, with target_session_attrs=read-write for example, or find where the default is set; the command says which it is"
	case len(lacks) > 0:
		c.Says, c.Remedy = "its role lacks rights: "+strings.Join(lacks, ", "), "grant them to it; the command says how"
	case awaited.Names != "":
		c.Says, c.Remedy = awaited.String(), "start the replica, or take its name out; deliveries are answered 503 until then, and come again"
	case hidden != "":
		c.Says = "the search_path leads to other tables than those that events were stored in lately, in schema " + hidden +
			": those that are done there run again when they are delivered again"
		c.Remedy = "stop this program, and follow what the command says"
	case x.pool.Config().MaxConns == 1:
		c = check.Result{
			Name: "postgres", Healthy: true, Warning: true, Says: "it answers, and can be written to; its pool has 1 connection: while a handler has it, deliveries and workers wait",
			Remedy: "add pool_max_conns=4 or more to the database's address",
		}
	default:
		c = check.Result{Name: "postgres", Healthy: true, Says: "it answers, and can be written to"}
	}
	x.add(c)
	return c.Healthy
}

// look returns what find finds, or found lately, or why that is not known. What keeps all events from being read is a
// failure of the check of Postgres.
func look[T any](x *examination, last *lastLook[T], find func() (T, error)) (found T, unknown string) {
	if !x.reached {
		return found, "it is not known while Postgres is not well"
	}
	found, err := last.get(&x.late, find)
	switch {
	case err == nil:
		return found, ""
	case errors.Is(err, errNotLooked):
		return found, "it is not known: " + err.Error()
	case isPooled(err):
		x.checks[0] = pooled(err)
	case pgtx.Canceled(err), errors.Is(err, context.DeadlineExceeded):
		locked, ok := x.findLock(err)
		if !ok {
			return found, "it is not known: Postgres took too long to look: see idem doctor"
		}
		x.checks[0] = locked
	case pgtx.Unavailable(err):
		return found, "it is not known: the connection was lost, it will be looked at again"
	default:
		x.checks[0] = check.Result{
			Name: "postgres", Says: "the events cannot be read: the tables are missing, or were changed", Cause: err,
			Remedy: "see the error in this application's log, and follow what the command says", Command: "idem doctor",
		}
	}
	x.checks[0].Source, x.reached = x.inbox.SourceName(), false
	return found, "it is not known while Postgres is not well"
}

// findLock names the session that keeps the tables locked, and the statement that ends it. It asks on a connection of
// its own: those of the pool may all wait for that lock.
func (x *examination) findLock(cause error) (c check.Result, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), x.limits.Timeout)
	defer cancel()
	conn, err := pgtx.Connect(ctx, x.pool)
	if err != nil {
		return c, false
	}
	defer pgtx.Disconnect(conn)
	by, err := store.FindBlockers(ctx, conn, x.limits.Timeout)
	if err != nil || len(by) == 0 {
		return c, false
	}
	long := ""
	if by[0].OpenFor >= time.Second { // a role may see the sessions of others, and not their age
		long = " for " + by[0].OpenFor.Round(time.Second).String()
	}
	return check.Result{
		Name: "postgres", Cause: cause, Remedy: "wait for its end, or end it", Command: by[0].Remedy(),
		Says: fmt.Sprintf("process %d of Postgres, application %q, has kept %s locked%s, and what uses the tables waits for it", by[0].PID, by[0].Application, by[0].Table, long),
	}, true
}

func pooled(err error) check.Result {
	return check.Result{
		Name: "postgres", Cause: err, Says: "a pooler gives each transaction another session, and this program keeps prepared statements",
		Remedy: "add default_query_exec_mode=exec to the database's address, and have workers poll (PollOnly)",
	}
}

// isPooled reports whether a prepared statement was not there, or was there twice.
func isPooled(err error) bool {
	state := pgtx.SQLState(err)
	return state == "26000" || state == "42P05"
}
