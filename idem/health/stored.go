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
	"github.com/paghooks/paghooks/idem/internal/inside"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
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

	// The last looks at the stored events. Each reads all that is not done.
	due, ahead lastLook[time.Duration] // how old the oldest is
	retrying   lastLook[seen[store.FailingEvents]]
	standing   lastLook[seen[store.Standing]]
	parked     lastLook[seen[store.ParkedEvents]]
	unscoped   lastLook[bool]
}

// Examine implements [Part].
func (r *receiver) Examine(ctx context.Context, limits check.Limits) []check.Result {
	x := &examination{pool: r.in.Pool(), inbox: r.inbox, limits: limits}
	x.reached = x.examinePostgres(ctx, store.NeededRights(r.inbox.KeepPayloads))
	if own, ok := r.own.(Part); ok {
		x.checks = append(x.checks, own.Examine(ctx, limits)...)
	}
	if limits.MaxRetrying > 0 {
		r.examineRetrying(ctx, x)
	}
	if limits.MaxPending > 0 {
		r.examineDue(ctx, x)
	}
	examineOpen(ctx, x, "held", &r.standing, store.FindStanding, sayStanding)
	if limits.MaxParked > 0 {
		var n *int64
		examineOpen(ctx, x, "parked", &r.parked, store.FindParked, func(found store.ParkedEvents) (bool, string) {
			n = &found.N
			return sayParked(found, limits.MaxParked)
		})
		x.checks[len(x.checks)-1].Count = n
	}
	if r.in.AlwaysScoped() {
		examine(ctx, x, "scopes", &r.unscoped, store.HasUnscoped, sayUnscoped)
	}
	return x.checks
}

func sayUnscoped(found bool) (healthy bool, says string) {
	if !found {
		return true, "every stored event has a scope"
	}
	return false, "events are stored without a scope, and this program gives every event one: one of before that comes again is done twice: " +
		"stop every process of the source, and move them with idem rescope, see idem help rescope; or give their account's token or secret to the dispatcher again, without a scope"
}

func (r *receiver) examineRetrying(ctx context.Context, x *examination) {
	examineOpen(ctx, x, "retrying", &r.retrying, store.FindFailing, func(found store.FailingEvents) (bool, string) {
		healthy, says := sayAge(found.Oldest, x.limits.MaxRetrying, "none fails that nobody has acknowledged", "the oldest event that fails came %s ago",
			"an event has failed for %s: fix what its error says, see idem list -failed, or acknowledge it with idem acknowledge until you do: the workers try it again, and park it in the end")
		return healthy, says + known(found.Acknowledged)
	})
}

// known says how many events are left out of a check.
func known(acknowledged int64) string {
	if acknowledged == 0 {
		return ""
	}
	return fmt.Sprintf("; acknowledged: %d", acknowledged)
}

// aheadMost is the largest time in the future at which an event may have arrived: commits take their time,
// and clocks are put right by a little all the time.
const aheadMost = time.Minute

func (r *receiver) examineDue(ctx context.Context, x *examination) {
	examine(ctx, x, "workers", &r.due, store.OldestDue, func(age time.Duration) (bool, string) {
		limit, advice := x.limits.MaxPending+r.inbox.Timeout, "workers run and do not keep up: see in the log whether handlers hang, or raise Workers" // it is due while it is being processed, too
		soon := limit
		if x.limits.MaxPending == maxPending {
			soon = noWorkers
		}
		if age > soon {
			if alive, err := limited(ctx, x, store.LivingWorkers); err == nil && len(alive) == 0 {
				limit, advice = soon, "no workers are alive: start the program that processes events (idem.Serve or Inbox.Run), here or in another process"
			}
		}
		return sayAge(age, limit, "no event is due", "the oldest event that is due waits for %s", "an event has been due for %s: "+advice)
	})
	ahead := func(ctx context.Context, db store.DB, source string) (time.Duration, error) {
		return store.Ahead(ctx, db, source, aheadMost)
	}
	examine(ctx, x, "clock", &r.ahead, ahead, func(age time.Duration) (bool, string) {
		return sayAge(age, aheadMost, "no event arrived in the future", "events arrived up to %s in the future", "by the database's clock, an event arrived %s in the future: "+
			"the clock was put back, and what arrived before waits until it is that late again: put it right, or requeue the events that are pending")
	})
}

// maxPending is the default of MaxPending, and noWorkers the time that counts with it while no workers are alive:
// their last signs of life are older than 10 seconds then.
const (
	maxPending = 5 * time.Minute
	noWorkers  = 15 * time.Second
)

func sayAge(age, limit time.Duration, none, well, wrong string) (healthy bool, says string) {
	switch oldest := age.Round(time.Second); {
	case age > limit:
		return false, fmt.Sprintf(wrong, oldest)
	case age == 0:
		return true, none
	default:
		return true, fmt.Sprintf(well, oldest)
	}
}

func sayStanding(found store.Standing) (healthy bool, says string) {
	if found.Lanes == 0 {
		return true, "no event waits for a parked one" + known(found.Acknowledged)
	}
	return false, fmt.Sprintf("%d events of %d entities wait for a parked one: first %d of %s, %s, for %s: "+
		"fix what its error says, see operator.Operator.Blocked, and replay it, or discard it to give it up",
		found.Waiting, found.Lanes, found.Behind, found.Key, strings.Join(found.Types, " "), found.Head) + known(found.Acknowledged)
}

func sayParked(found store.ParkedEvents, most int) (healthy bool, says string) {
	switch {
	case found.N >= int64(most):
		says = fmt.Sprintf("%d events are parked, and nobody has acknowledged them since they failed: first %s, %s: "+
			"fix what its error says, and replay it; else discard it, or acknowledge it with idem acknowledge until you do", found.N, found.ID, found.Type)
	case found.N > 0:
		healthy, says = true, fmt.Sprintf("%d events are parked", found.N)
	default:
		healthy, says = true, "no event is parked that nobody has acknowledged"
	}
	return healthy, says + known(found.Acknowledged)
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

func (x *examination) add(name string, healthy bool, says string, cause error) {
	x.checks = append(x.checks, check.Result{Source: x.inbox.SourceName(), Name: name, Healthy: healthy, Says: says, Cause: cause})
}

// examinePostgres reports whether the receiver's Postgres answers, and lets it write.
func (x *examination) examinePostgres(ctx context.Context, needs []store.Rights) (well bool) {
	const name = "postgres"
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
	switch {
	case isPooled(err):
		x.add(name, false, pooled, err)
	case err != nil:
		if locked := x.findLock(); locked != "" {
			x.add(name, false, fmt.Sprintf("it did not answer within %s: %s", x.limits.Timeout, locked), err)
			return false
		}
		x.add(name, false, fmt.Sprintf("it did not answer within %s: it is unavailable or refuses connections, the network is broken, "+
			"or all connections of the pool are in use: see the error in this application's log", x.limits.Timeout), err)
	case readOnly:
		x.add(name, false, "it is read-only: it is a replica (connect to the primary, with target_session_attrs=read-write for example), or its transactions are read-only by default, as hosts set it when the disk is full: idem doctor says which", nil)
	case len(lacks) > 0:
		x.add(name, false, "its role lacks rights: "+strings.Join(lacks, ", ")+": grant them to it; idem doctor says how", nil)
	case awaited.Names != "":
		x.add(name, false, awaited.String()+": start the replica, or take its name out; deliveries are answered 503 until then, and come again", nil)
	case hidden != "":
		x.add(name, false, "the search_path leads to other tables than those that events were stored in lately, in schema "+hidden+
			": those that are done there run again when they are delivered again: stop this program, and follow idem doctor", nil)
	default:
		x.add(name, true, "it answers, and can be written to", nil)
		return true
	}
	return false
}

// examine adds a check of the stored events: say judges the result of query.
func examine[T any](
	ctx context.Context, x *examination, name string, last *lastLook[T],
	query func(context.Context, store.DB, string) (T, error), say func(T) (healthy bool, says string),
) {
	look(x, name, last, func() (T, error) { return limited(ctx, x, query) }, say)
}

// seen is the result of a look at events that are not done.
type seen[T any] struct {
	found T
	most  store.Most // that were looked at; 0 is all
}

// enough is the number of events that are looked at where Postgres takes longer than Timeout to look at all.
const enough store.Most = 100_000

// examineOpen adds a check of the events that are not done: of all of them, or of enough.
func examineOpen[T any](
	ctx context.Context, x *examination, name string, last *lastLook[seen[T]],
	query func(context.Context, store.DB, string, store.Most) (T, error), say func(T) (healthy bool, says string),
) {
	of := func(most store.Most) (seen[T], error) {
		found, err := limited(ctx, x, func(ctx context.Context, db store.DB, source string) (T, error) { return query(ctx, db, source, most) })
		return seen[T]{found, most}, err
	}
	find := func() (seen[T], error) {
		s, err := of(0)
		if pgtx.Canceled(err) {
			return of(enough)
		}
		return s, err
	}
	look(x, name, last, find, func(s seen[T]) (healthy bool, says string) {
		healthy, says = say(s.found)
		if s.most > 0 {
			says += fmt.Sprintf("; so many events are not done, see idem stats, that this is said of %d of them", s.most)
		}
		return healthy, says
	})
}

// look adds a check: say judges the result of find.
func look[T any](x *examination, name string, last *lastLook[T], find func() (T, error), say func(T) (healthy bool, says string)) {
	if !x.reached {
		x.add(name, true, "it is not known while Postgres is not well", nil)
		return
	}
	found, err := last.get(&x.late, find)
	switch {
	case err == nil:
		healthy, says := say(found)
		x.add(name, healthy, says, nil)
	case errors.Is(err, errNotLooked):
		x.add(name, true, "it is not known: "+err.Error(), nil)
	case isPooled(err):
		x.add(name, false, pooled, err)
	case pgtx.Canceled(err), errors.Is(err, context.DeadlineExceeded):
		if locked := x.findLock(); locked != "" {
			x.add(name, false, locked, err)
			return
		}
		x.add(name, true, "it is not known: Postgres took too long to look: see idem doctor", err)
	case pgtx.Unavailable(err):
		x.add(name, true, "it is not known: the connection was lost, it will be looked at again", err)
	default:
		x.add(name, false, "the events cannot be read: see the error in this application's log; have idem.Migrate run at start", err)
	}
}

// findLock names the session that keeps the tables locked, and the statement that ends it; "" if there is none. It
// asks on a connection of its own: those of the pool may all wait for that lock.
func (x *examination) findLock() string {
	ctx, cancel := context.WithTimeout(context.Background(), x.limits.Timeout)
	defer cancel()
	conn, err := pgtx.Connect(ctx, x.pool)
	if err != nil {
		return ""
	}
	defer pgtx.Disconnect(conn)
	by, err := store.FindBlockers(ctx, conn, x.limits.Timeout)
	if err != nil || len(by) == 0 {
		return ""
	}
	long := ""
	if by[0].OpenFor >= time.Second { // a role may see the sessions of others, and not their age
		long = " for " + by[0].OpenFor.Round(time.Second).String()
	}
	return fmt.Sprintf("process %d of Postgres, application %q, has kept %s locked%s, and what uses the tables waits for it: wait for its end, or end it: %s",
		by[0].PID, by[0].Application, by[0].Table, long, by[0].Remedy())
}

const pooled = "a pooler gives each transaction another session, and pgx keeps prepared statements: add default_query_exec_mode=exec to the database's address, and set PollOnly of an inbox"

// isPooled reports whether a prepared statement was not there, or was there twice.
func isPooled(err error) bool {
	state := pgtx.SQLState(err)
	return state == "26000" || state == "42P05"
}

// limited asks Postgres, which gives up after Timeout: a connection is not lost
// because there is much to read.
func limited[T any](ctx context.Context, x *examination, query func(context.Context, store.DB, string) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*x.limits.Timeout)
	defer cancel()
	err = pgx.BeginTxFunc(ctx, x.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := store.LimitTime(ctx, tx, x.limits.Timeout); err != nil {
			return err
		}
		answer, err = query(ctx, tx, x.inbox.SourceName())
		return err
	})
	return answer, err
}
