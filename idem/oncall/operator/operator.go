package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/inside"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Operator runs the operations of an [idem.Inbox] for a person, and records them in the audit trail: the actor, the
// action, its events, reason and result. It has a [Plan] for each, which names the events that a person confirms.
//
// An action is recorded before it begins, and is not begun if that fails. Its result is recorded at its end.
// An action without an end is running while it is Alive; otherwise its process is dead. The entry of a running
// replay has its progress, and the outcome of each event as soon as it is processed: see
// [Operator.Outcomes]. A requeue, a discard and an erase record the events that they change in the transaction
// that changes them. [Operator.Stop] ends an action of any process.
//
// To finish an action that was broken off, plan it again, and show the events again: another person may have acted on
// some of them since. A replay leaves events that are done; a requeue, a discard and an erase change all of their
// events or none.
type Operator struct {
	Inbox *idem.Inbox // the receiver's; what is done with its methods is not recorded

	// Progress, when set, is called after each event of a replay or dry replay, with
	// the sum so far and the number of events that were chosen.
	Progress func(sum idem.Replayed, of int)

	// Failed, when set, is called for each event that a replay or dry replay fails to
	// process, before Progress, with the reason.
	Failed func(e idem.Event, err error)

	// RequeueWithoutWorkers has a requeue leave events to workers although none are alive:
	// set it where workers run only from time to time, with [idem.Inbox.Drain]. Default: false.
	RequeueWithoutWorkers bool

	// ReplayPaused has a replay process events that are paused. Default: false, such a replay is refused.
	ReplayPaused bool

	// EraseNotDone has an erase discard events that are not done, and erase them. They will not
	// be processed. Default: false, they are left alone.
	EraseNotDone bool

	name     string
	receiver idem.Receiver
	in       engine
}

// engine is the inside of a receiver.
type engine interface {
	Inbox() *idem.Inbox
	Pool() *pgxpool.Pool
	AlwaysScoped() bool
	Rows(f idem.Filter) store.Filter
	Stored(r store.Row) idem.StoredEvent
	Stats(s store.Snapshot) idem.Stats
	Choose(ctx context.Context, f idem.Filter) (idem.Filter, error)
	Replay(ctx context.Context, f idem.Filter, dry bool, ran func(sum idem.Replayed, e idem.Event, failure error)) (idem.Replayed, error)
	Rerun(ctx context.Context, e idem.Event) (idem.Outcome, error)
	Discard(ctx context.Context, f idem.Filter, reason string, changed func(context.Context, pgx.Tx, []string) error) (int64, error)
	Requeue(ctx context.Context, f idem.Filter, changed func(context.Context, pgx.Tx, []string) error) (int64, error)
	DryPrune(ctx context.Context) (int64, error)
	Wake()
}

// New returns an operator for the events of a receiver. name is the person that it
// acts for, as the audit trail shows them; if it is "", a method that would record
// returns an error instead.
func New(r idem.Receiver, name string) *Operator {
	in := inside.Of[engine](r)
	return &Operator{Inbox: in.Inbox(), name: name, receiver: r, in: in}
}

// SourceName returns the name of the receiver's source.
func (o *Operator) SourceName() string { return o.Inbox.SourceName() }

// Record runs do as an action of the application, and records it: a look at a body, for example. what names
// the events in the trail. The result is the text that do returns.
func (o *Operator) Record(ctx context.Context, action, what, reason string, do func(context.Context) (string, error)) error {
	a := store.Action{Actor: o.name, Action: action, Source: o.SourceName(), Filter: what, Reason: reason}
	return o.record(ctx, a, nil, func(ctx context.Context, _ *acting) (string, error) { return do(ctx) })
}

// ErrDoneLately is returned by [Operator.RecordOnce] for an action that somebody has begun a short time ago.
var ErrDoneLately = errors.New("operator: the same was done lately: see the audit trail")

// RecordOnce is Record for what several processes would do at the same time. If anybody has begun the same action on
// the same what within the time every, by the database's clock, it does nothing, and returns [ErrDoneLately].
func (o *Operator) RecordOnce(ctx context.Context, every time.Duration, action, what, reason string, do func(context.Context) (string, error)) error {
	a := store.Action{Actor: o.name, Action: action, Source: o.SourceName(), Filter: what, Reason: reason}
	return o.recordOnce(ctx, every, a, nil, func(ctx context.Context, _ *acting) (string, error) { return do(ctx) })
}

// record stores an action in the trail, calls do with the entry, and stores the result.
func (o *Operator) record(ctx context.Context, a store.Action, keys []string, do func(context.Context, *acting) (string, error)) error {
	return o.recordOnce(ctx, 0, a, keys, do)
}

// recordOnce is record, unless the same action has begun within every.
func (o *Operator) recordOnce(ctx context.Context, every time.Duration, a store.Action, keys []string, do func(context.Context, *acting) (string, error)) error {
	if o.name == "" {
		return fmt.Errorf("operator: %s: the operator has no name: give New who it acts for", a.Action)
	}
	a.Filter, a.Reason = store.Storable(a.Filter, maxRecorded), store.Storable(a.Reason, maxRecorded)
	id, err := query(ctx, o, a.Action+" could not be recorded, and was not begun", func(ctx context.Context, db *pgxpool.Pool) (id int64, err error) {
		err = pgtx.Change(ctx, db, func(ctx context.Context, tx pgx.Tx) (err error) {
			if every > 0 {
				if lately, err := store.ActedWithin(ctx, tx, a, every); err != nil || lately {
					return err
				}
			}
			id, err = store.BeginAction(ctx, tx, a, keys)
			return err
		})
		return id, err
	})
	switch {
	case err != nil:
		return err
	case id == 0:
		return ErrDoneLately
	}
	on := &acting{pool: o.in.Pool(), id: id}
	running, stop := on.start(ctx)
	result, err := o.protect(running, a, func() (string, error) { return do(running, on) })
	if cause := stop(); err != nil && cause != nil {
		result = strings.TrimPrefix(result+"; "+cause.Error(), "; ")
		err = fmt.Errorf("operator: %s: %w", a.Action, cause)
	} else if err != nil {
		result = strings.TrimPrefix(result+"; failed: "+recorded(err), "; ")
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if ended := store.EndAction(ending, o.in.Pool(), id, store.Storable(result, store.MaxError)); ended != nil {
		err = errors.Join(err, fmt.Errorf("operator: the end of %s could not be recorded: %w", a.Action, store.Explain(ended)))
	}
	return err
}

// recorded returns an error as the trail stores it. The error of a handler is left out: it may name a person.
func recorded(err error) string {
	if _, ofWork := errors.AsType[*pgtx.WorkError](err); ofWork {
		return "while a handler ran"
	}
	return err.Error()
}

// protect returns a panic of do, in an application's Progress for example, as an error, so that the action has
// an end in the trail. The log gets the stack.
func (o *Operator) protect(ctx context.Context, a store.Action, do func() (string, error)) (result string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			if stack := debug.Stack(); o.Inbox.Logger != nil {
				_ = pgtx.Protect(func() error {
					o.Inbox.Logger.ErrorContext(ctx, "webhook "+a.Action+" failed", slog.String("source", a.Source), slog.String("error", fmt.Sprintf("%v\n%s", err, stack)))
					return nil
				})
			}
		}
	}()
	return do()
}

// maxRecorded limits the bytes of a filter or a reason in the trail: lists of
// ids may be long, and the events that were chosen are recorded anyway.
const maxRecorded = 2000

// recordTime limits the record of an action's end.
const recordTime = 5 * time.Second

// statementTime limits one statement on the trail.
const statementTime = 5 * time.Minute

// timed calls f, which executes one statement, with a deadline of its own.
func timed[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	return f(ctx)
}

// query is timed with an error that says what the operator was doing.
func query[T any](ctx context.Context, o *Operator, doing string, f func(context.Context, *pgxpool.Pool) (T, error)) (v T, err error) {
	found, err := timed(ctx, func(ctx context.Context) (T, error) { return f(ctx, o.in.Pool()) })
	if err != nil {
		return v, fmt.Errorf("operator: %s: %w", doing, store.Explain(err))
	}
	return found, nil
}

// each returns the values that of returns for some others.
func each[A, B any](all []A, of func(A) B) []B {
	values := make([]B, len(all))
	for n, a := range all {
		values[n] = of(a)
	}
	return values
}

// ErrStopped is the error of an action that [Operator.Stop] has ended.
var ErrStopped = errors.New("the action was stopped")

// stopped is the cause of an action's context that [Operator.Stop] has ended.
type stopped struct{ by string }

func (s *stopped) Error() string { return "stopped by " + s.by }

func (s *stopped) Is(target error) bool { return target == ErrStopped }

// acting is a running action, by its entry in the trail.
type acting struct {
	pool *pgxpool.Pool
	id   int64
	end  context.CancelCauseFunc // ends the action
}

// signEvery is the interval of an action's signs of life.
const signEvery = 2 * time.Second

// start begins the action's signs of life. The returned context ends when the action is stopped. stop ends the
// signs of life, and returns the cause; nil if the action was not stopped.
func (a *acting) start(ctx context.Context) (acting context.Context, stop func() error) {
	ctx, a.end = context.WithCancelCause(ctx)
	signing, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the action ends after its context
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(signEvery)
		defer every.Stop()
		for {
			select {
			case <-signing.Done():
				return
			case <-every.C:
				a.ask(signing, func(ctx context.Context, db store.DB) (string, error) { return store.SignAction(ctx, db, a.id) })
			}
		}
	}()
	return ctx, func() error {
		cancel()
		<-ended
		cause := context.Cause(ctx)
		a.end(nil)
		if _, ok := errors.AsType[*stopped](cause); ok {
			return cause
		}
		return nil
	}
}

// note records the outcome of the action on an event. A replay goes on if that fails.
func (a *acting) note(ctx context.Context, rowKey, result string) {
	a.ask(context.WithoutCancel(ctx), func(ctx context.Context, db store.DB) (string, error) {
		return store.NoteOutcome(ctx, db, a.id, rowKey, result)
	})
}

// ask executes a statement that returns the person that stopped the action, and ends the action if there is
// one.
func (a *acting) ask(ctx context.Context, f func(context.Context, store.DB) (string, error)) {
	by := ""
	err := pgtx.Ask(ctx, a.pool, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		by, err = f(ctx, conn)
		return err
	})
	if err == nil && by != "" {
		a.end(&stopped{by})
	}
}

// record records what the action changed, in the transaction that changes it. It returns an error if the
// action was stopped.
func (a *acting) record(ctx context.Context, tx store.DB, keys []string, result, each string) error {
	by, err := store.ChangedBy(ctx, tx, a.id, keys, result, each)
	if err == nil && by != "" {
		err = &stopped{by}
		a.end(err)
	}
	return err
}
