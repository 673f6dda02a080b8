package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Account is the account that events are stored under: see
// [idem.Event].
type Account struct {
	Source string
	Scope  string // "" is an account without a scope
}

// String returns the account as people read it.
func (a Account) String() string {
	if a.Scope == "" {
		return a.Source + " without a scope"
	}
	return fmt.Sprintf("%s %q", a.Source, a.Scope)
}

// PlanRescope plans to move all that is stored of one scope to another account, in
// one transaction: events in every state, their bodies and their order, the
// entries of the audit trail about them, and the rows that a package of the provider
// stores for each account, such as the charges of package charges. The search_path must
// have that package's tables, as the application's has.
//
// An event is recognized by its source, its scope and its id. So an account that gets
// a scope, or another one, and a source that gets another name have every event of
// before again as a new one: one that the provider delivers again is done twice.
// This prevents that. Do it in this order:
//
//  1. Stop every process that receives or processes events of the source. Deliveries
//     fail meanwhile, and the provider repeats them.
//  2. See that nothing of the old name is elsewhere: the consumers of a relay have received
//     all that was published. An event that comes from there
//     later has the old name, and is stored under that.
//  3. Rescope.
//  4. Start the version that uses the new name.
//
// Do waits up to 10 seconds for transactions that store or process events, and has new
// ones wait for it. It moves nothing and returns an error while workers of the source
// are alive, or where the target has events or bodies with the same ids: the error
// names them, and the remedy. It cannot see an idle process without workers. Its time is
// that of updating the rows.
func (o *Operator) PlanRescope(ctx context.Context, scope string, to Account) (*Plan, error) {
	from := Account{o.SourceName(), scope}
	if err := checkRescope(from, to); err != nil {
		return nil, err
	}
	n, err := query(ctx, o, "counting the events of a scope", func(ctx context.Context, db *pgxpool.Pool) (int64, error) {
		return store.CountAccount(ctx, db, store.Account(from))
	})
	p := &Plan{Action: "rescope", Did: "moved to " + to.String(), Atomic: true, o: o, Count: n, Effect: []string{
		fmt.Sprintf("All of account %s would be moved to %s. Every process that receives or processes events of the source has to be stopped, "+
			"and its broker drained: what comes later under the old name is a new event.", strconv.Quote(scope), to),
	}}
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
		err = o.Record(ctx, p.Action, from.String()+" to "+to.String(), reason, func(ctx context.Context) (string, error) {
			err := pgtx.Change(ctx, o.in.Pool(), func(ctx context.Context, tx pgx.Tx) (err error) { // it sees rows that were committed while it waited
				r.Acted, err = rescope(ctx, tx, store.Account(from), store.Account(to))
				return err
			})
			switch {
			case errors.Is(err, pgtx.ErrUnknown):
				return "whether all or nothing was moved is unknown", fmt.Errorf("operator: moving %s to %s: %w", from, to, store.Explain(err))
			case err != nil:
				return "nothing was moved", fmt.Errorf("operator: moving %s to %s: %w", from, to, store.Explain(err))
			}
			return fmt.Sprintf("%d moved", r.Acted), nil
		})
		return r, err
	}
	return p, err
}

func checkRescope(from, to Account) error {
	switch {
	case to.Source == "" || strings.Contains(to.Source, "/") || !store.Nameable(to.Source):
		return fmt.Errorf("operator: the source to move events to is %q: give the name that the receiver has", to.Source)
	case !store.Nameable(to.Scope):
		return fmt.Errorf("operator: the scope to move events to has %d bytes, or is no text: give one of at most %d", len(to.Scope), store.MaxName)
	case from == to:
		return fmt.Errorf("operator: the events of %s would be moved to where they are: give another scope", from)
	}
	return nil
}

// shownBoth is the number of events that an error names.
const shownBoth = 5

func rescope(ctx context.Context, tx pgx.Tx, from, to store.Account) (int64, error) {
	err := store.LockTables(ctx, tx)
	if pgtx.TookTooLong(err) || pgtx.Retryable(err) {
		return 0, fmt.Errorf("events are being stored or processed: stop every process of the source first: %w", err)
	}
	if err != nil {
		return 0, err
	}
	alive, err := store.LivingWorkers(ctx, tx, from.Source)
	if err != nil {
		return 0, err
	}
	if len(alive) > 0 {
		return 0, fmt.Errorf("%d workers of %s are alive, one on %s in process %d: stop every process of the source first; one that was killed counts for %s",
			len(alive), from.Source, alive[0].Host, alive[0].PID, store.Alive)
	}
	both, n, err := store.FindBoth(ctx, tx, from, to, shownBoth)
	if err != nil {
		return 0, err
	}
	if n > 0 {
		return 0, fmt.Errorf("%d events are stored under both, so they may have been done twice: %s: see what was done for each, put that right, "+
			"and delete the row that says less from idem_events, idem_payloads and idem_archive; then move the rest", n, strings.Join(both, ", "))
	}
	if n, err = store.Rescope(ctx, tx, from, to); err == nil {
		err = store.RescopeProvider(ctx, tx, from, to)
	}
	return n, err
}

// OldEvent is an event in the table of another program, the receiver that this one replaces: see
// [Operator.Import].
type OldEvent struct {
	ID string // the provider's event id

	// Type and Key are its type and the id of its entity, as [idem.Event] has them; "" where
	// they are not known. [Operator.OfKey] finds an event by its Key. A provider's Identify reads both from
	// the body.
	Type, Key string

	// Done reports that the other program has processed the event. Its row alone does not: a program that
	// answers first also has rows that are not processed.
	Done bool

	// ReceivedAt is the time of arrival, by which [idem.Inbox.Prune] forgets the event; zero is now.
	ReceivedAt time.Time
}

// Imported counts the results of events that were to be imported.
type Imported struct {
	Stored    int64 // were not known here, and are stored as done
	Completed int64 // waited here to be processed, and are done now
	Known     int64 // are done here, too, or were given twice
	Busy      int64 // left alone: they are being processed here; import them again in a moment
	Discarded int64 // left alone: somebody gave them up here
	NotDone   int64 // left alone: the other program has not done them
}

// String returns the counts as people read them.
func (i Imported) String() string {
	return fmt.Sprintf("%d stored, %d that waited are done, %d known; left alone: %d being processed, %d discarded, %d not done by the other program",
		i.Stored, i.Completed, i.Known, i.Busy, i.Discarded, i.NotDone)
}

func (i *Imported) add(other Imported) {
	i.Stored += other.Stored
	i.Completed += other.Completed
	i.Known += other.Known
	i.Busy += other.Busy
	i.Discarded += other.Discarded
	i.NotDone += other.NotDone
}

// importBatch is the number of events that one statement stores.
const importBatch = 1000

// Import records, and takes over the events that another program has processed, the receiver that this one
// replaces. An imported event that comes again is a duplicate, and no handler runs.
//
//	sum, err := operator.New(inbox, "ana").Import(ctx, "", old, "from our own receiver")
//
// scope is the account that the events are stored under, "" for none. With another scope an event is not
// recognized when it comes again, and is done again.
//
// An event that waits here becomes done, since the other program has its effect: it had no handler, has
// failed, or is behind another event. Later events of its entity go on. Import leaves an event that is being
// processed, one that was discarded, and one whose Done is false, which either program has yet to process.
// Import may be called again, and while the other program runs: call it last when that program has stopped.
// docs/import.md describes the time in which both run.
//
// Import from the table of the other program, not from the provider's API, which knows that an event exists
// and not that it was processed. The body of an imported event is not known here, so a redelivery with another
// body is no conflict.
//
// Import ends at an error of events, and at an event without an id. What was imported until then stays.
func (o *Operator) Import(ctx context.Context, scope string, events iter.Seq2[OldEvent, error], reason string) (sum Imported, err error) {
	switch {
	case !store.Nameable(scope):
		return sum, fmt.Errorf("operator: importing events: the scope has %d bytes, or is no text: give the one of the account's Credentials, of at most %d", len(scope), store.MaxName)
	case scope == "" && o.in.AlwaysScoped():
		return sum, errors.New("operator: importing events: the scope is empty, and the receiver gives every event one: give that of the account's Credentials")
	}
	into := Account{o.SourceName(), scope}
	err = o.record(ctx, store.Action{
		Actor: o.name, Action: "import", Source: into.Source, Filter: "into " + into.String(), Reason: reason,
	}, nil, func(ctx context.Context, on *acting) (string, error) {
		sum, err = o.importAll(ctx, on, scope, events)
		if err != nil {
			err = fmt.Errorf("operator: importing events: %w", store.Explain(err))
		}
		return sum.String(), err
	})
	return sum, err
}

// importAll imports events in batches.
func (o *Operator) importAll(ctx context.Context, on *acting, scope string, events iter.Seq2[OldEvent, error]) (sum Imported, err error) {
	var batch []OldEvent
	flush := func() error {
		did, err := o.importSome(ctx, on, scope, batch)
		sum.add(did)
		batch = batch[:0]
		return err
	}
	for e, err := range events {
		if err == nil && e.ID == "" {
			err = errors.New("an event has no id: leave it out, nothing recognizes it when it comes again")
		}
		if err != nil {
			return sum, errors.Join(err, flush())
		}
		if batch = append(batch, e); len(batch) == importBatch {
			if err := flush(); err != nil {
				return sum, err
			}
		}
	}
	return sum, flush()
}

// importSome stores the events that are new, and then completes those that wait.
func (o *Operator) importSome(ctx context.Context, on *acting, scope string, batch []OldEvent) (sum Imported, err error) {
	var done []store.Event
	var times []time.Time
	var keys []string
	for _, e := range batch {
		if !e.Done {
			sum.NotDone++
			continue
		}
		named := o.named(scope, e)
		done, times, keys = append(done, named), append(times, e.ReceivedAt), append(keys, named.RowKey())
	}
	if len(done) == 0 {
		return sum, nil
	}
	sum.Stored, err = timed(ctx, func(ctx context.Context) (int64, error) { return store.Import(ctx, o.in.Pool(), done, times) })
	if err != nil {
		return sum, err
	}
	slices.Sort(keys)
	if err := o.complete(ctx, on, slices.Compact(keys), &sum); err != nil {
		return sum, err
	}
	sum.Known = int64(len(done)) - sum.Stored - sum.Completed - sum.Busy - sum.Discarded
	return sum, nil
}

// complete makes waiting events done, and counts those that it leaves.
func (o *Operator) complete(ctx context.Context, on *acting, keys []string, sum *Imported) error {
	var completed, lanes []string
	change := func(do func(context.Context, pgx.Tx) error) (err error) {
		for range 3 { // it may meet handlers that promote events of the same entities
			_, err = timed(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, pgtx.Change(ctx, o.in.Pool(), do) })
			if !pgtx.Retryable(err) {
				break
			}
		}
		return err
	}
	err := change(func(ctx context.Context, tx pgx.Tx) (err error) {
		completed, lanes, err = store.Complete(ctx, tx, on.id, keys, o.Inbox.KeepPayloads)
		if err != nil {
			return err
		}
		if sum.Discarded, sum.Busy, err = store.CountLeft(ctx, tx, keys); err != nil {
			return err
		}
		return store.PromoteWaiting(ctx, tx, lanes)
	})
	if err != nil || len(completed) == 0 {
		return err
	}
	sum.Completed = int64(len(completed))
	// Again, as after a discard: for events that were held back meanwhile. If this fails, the workers find them.
	_ = change(func(ctx context.Context, tx pgx.Tx) error { return store.PromoteWaiting(ctx, tx, lanes) })
	return nil
}

// named returns the event as [idem.Endpoint] names it.
func (o *Operator) named(scope string, e OldEvent) store.Event {
	named := store.Event{Source: o.SourceName(), Scope: scope, ID: e.ID, Type: e.Type, Key: e.Key}
	if !store.Nameable(named.ID) {
		named.ID = idem.BodyID([]byte(named.ID))
	}
	if !store.Nameable(named.Type) {
		named.Type = ""
	}
	if !store.Nameable(named.Key) {
		named.Key = idem.BodyID([]byte(named.Key))
	}
	return named
}
