package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Replay records and runs [idem.Common.Replay].
func (o *Operator) Replay(ctx context.Context, f idem.Filter, reason string) (idem.Replayed, error) {
	return o.replay(ctx, "replay", f, reason, false)
}

// DryReplay records and runs [idem.Common.DryReplay].
func (o *Operator) DryReplay(ctx context.Context, f idem.Filter, reason string) (idem.Replayed, error) {
	return o.replay(ctx, "dry replay", f, reason, true)
}

// replay records and runs a replay or dry replay. Its result names the first event that
// failed.
func (o *Operator) replay(ctx context.Context, action string, f idem.Filter, reason string, dry bool) (sum idem.Replayed, err error) {
	err = o.act(ctx, action, f, reason, func(ctx context.Context, on *acting, chosen idem.Filter) (string, error) {
		left := make(map[string]bool, len(chosen.Events))
		for _, key := range chosen.Events {
			left[key] = true
		}
		first, last := "", idem.Replayed{}
		sum, err = o.in.Replay(ctx, chosen, dry, func(sum idem.Replayed, e idem.Event, failure error) {
			key := store.Event(e).RowKey()
			result := became(sum, last)
			if result != "left" { // or somebody else has done it
				delete(left, key)
			}
			on.note(ctx, key, result)
			last = sum
			if failure != nil && first == "" {
				first = fmt.Sprintf("; first failure: %s %s", e.Type, e.ID) // without its error, which may name a person
			}
			if o.Failed != nil && failure != nil {
				o.Failed(e, failure)
			}
			if o.Progress != nil {
				o.Progress(sum, len(chosen.Events))
			}
		})
		rest := ""
		if err == nil {
			rest = skipped(f, chosen, len(chosen.Events)-len(left))
		}
		return text(sum) + behind(sum) + rest + first, err
	})
	return sum, err
}

// behind names the first event of a replay that ran behind a later one.
func behind(sum idem.Replayed) string {
	switch n := len(sum.Overtaken); n {
	case 0:
		return ""
	case 1:
		return "; " + sum.Overtaken[0].String()
	default:
		return fmt.Sprintf("; %s; %d more ran behind later ones", sum.Overtaken[0], n-1)
	}
}

// became returns the result of an event, by the sums after and before it.
func became(sum, last idem.Replayed) string {
	switch {
	case sum.Done > last.Done:
		return "done"
	case sum.Failed > last.Failed:
		return "failed"
	case sum.Unhandled > last.Unhandled:
		return "unhandled"
	}
	return "left"
}

// Requeue records and runs [idem.Inbox.Requeue]. It returns an error for a processor,
// which has no workers, and where no workers of the source are alive in any process:
// the requeued events would wait, and the provider's next delivery of one would be a
// duplicate.
func (o *Operator) Requeue(ctx context.Context, f idem.Filter, reason string) (n int64, err error) {
	if o.workers == nil {
		return 0, errors.New("operator: requeueing events: a Processor has no workers: replay them")
	}
	if err := o.findWorkers(ctx); err != nil {
		return 0, fmt.Errorf("operator: requeueing events: %w", err)
	}
	err = o.act(ctx, "requeue", f, reason, func(ctx context.Context, on *acting, chosen idem.Filter) (string, error) {
		n, err = o.workers.Requeue(ctx, chosen, on.changed(f, chosen, "requeued"))
		return "", err
	})
	return n, err
}

// findWorkers returns an error if nothing would process the requeued events.
func (o *Operator) findWorkers(ctx context.Context) error {
	if o.RequeueWithoutWorkers {
		return nil
	}
	var alive []store.Worker
	err := pgtx.Ask(ctx, o.in.Pool(), func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		alive, err = store.LivingWorkers(ctx, conn, o.SourceName())
		return err
	})
	switch {
	case err != nil:
		return store.Explain(err)
	case len(alive) == 0:
		return ErrNoWorkers
	}
	return nil
}

// ErrNoWorkers is the error of [Operator.Requeue] where no workers of the source have
// given a sign of life.
var ErrNoWorkers = errors.New("no workers of this source are alive, and what is requeued would wait for them: " +
	"replay the events, or start the program that runs the inbox; if it starts later, say that you requeue without workers")

// Discard records and runs [idem.Common.Discard].
func (o *Operator) Discard(ctx context.Context, f idem.Filter, reason string) (n int64, err error) {
	if f.IsZero() {
		return o.in.Discard(ctx, f, reason, nil) // it is refused, and not recorded
	}
	err = o.act(ctx, "discard", f, reason, func(ctx context.Context, on *acting, chosen idem.Filter) (string, error) {
		n, err = o.in.Discard(ctx, chosen, reason, on.changed(f, chosen, "discarded"))
		return "", err
	})
	return n, err
}

// Acknowledge records that a person takes care of events that are parked, or have failed and are tried again by
// themselves. They do not make [health] red any more: a parked one until it fails again, another one until it is
// parked. They stay as they are, and so does what is done to them. It leaves alone an event that waits for
// another one or for its first attempt, and one that is being processed. Where later events of an entity wait for
// a parked one, those that come afterwards make health red again. f's States are not used.
//
// Acknowledge returns the number of events that it acknowledged. [Operator.Unacknowledge] takes it back.
//
// [health]: https://pkg.go.dev/github.com/paghooks/paghooks/idem/health
func (o *Operator) Acknowledge(ctx context.Context, f idem.Filter, reason string) (n int64, err error) {
	return o.takeNote(ctx, "acknowledge", f, reason, true)
}

// Unacknowledge records, and takes back, what [Operator.Acknowledge] has done to events, whoever called it. It
// returns their number.
func (o *Operator) Unacknowledge(ctx context.Context, f idem.Filter, reason string) (n int64, err error) {
	return o.takeNote(ctx, "unacknowledge", f, reason, false)
}

// takeNote acknowledges events, or takes that back.
func (o *Operator) takeNote(ctx context.Context, action string, f idem.Filter, reason string, yes bool) (n int64, err error) {
	f = noted(f)
	err = o.act(ctx, action, f, reason, func(ctx context.Context, on *acting, chosen idem.Filter) (string, error) {
		return "", pgtx.Change(ctx, o.in.Pool(), func(ctx context.Context, tx pgx.Tx) error {
			keys, err := store.Acknowledge(ctx, tx, chosen.Events, yes)
			if err != nil {
				return store.Explain(err)
			}
			n = int64(len(keys))
			return on.record(ctx, tx, keys, fmt.Sprintf("%d %sd", n, action), action+"d")
		})
	})
	return n, err
}

// noted returns f as a filter of events that a person can acknowledge.
func noted(f idem.Filter) idem.Filter {
	f.States = []idem.State{idem.StatePending, idem.StateRetrying, idem.StateParked}
	return f
}

// Choose returns f with its Events set to the events that f chooses now, in the order of List; if f chooses
// none, the returned filter chooses nothing. An action with the returned filter is limited to these events:
// it leaves alone an event that arrived after Choose, and an event that is in none of the filter's States any
// more.
//
//	shown, err := operator.Choose(ctx, f)
//	… // show len(shown.Events) and List(ctx, shown) to a person, and ask
//	n, err := operator.Discard(ctx, shown, reason)
func (o *Operator) Choose(ctx context.Context, f idem.Filter) (idem.Filter, error) {
	return o.in.Choose(ctx, f)
}

// act finds the events that f chooses, and records the action on them. do gets the
// filter that names them.
func (o *Operator) act(ctx context.Context, action string, f idem.Filter, reason string, do func(context.Context, *acting, idem.Filter) (string, error)) error {
	chosen, err := o.Choose(ctx, f)
	if err != nil {
		return fmt.Errorf("operator: %s: %w", action, err)
	}
	a := store.Action{Actor: o.name, Action: action, Source: o.SourceName(), Filter: f.String(), Reason: reason}
	named := idem.Filter{States: f.States, Events: chosen.Events} // nothing else of an event changes
	return o.record(ctx, a, chosen.Events, func(ctx context.Context, on *acting) (string, error) { return do(ctx, on, named) })
}

// changed returns a function that records the result of the action on the events that f chose.
func (a *acting) changed(f, chosen idem.Filter, did string) func(context.Context, pgx.Tx, []string) error {
	return func(ctx context.Context, tx pgx.Tx, events []string) error {
		result := fmt.Sprintf("%d %s", len(events), did) + skipped(f, chosen, len(events))
		return a.record(ctx, tx, events, result, did)
	}
}

// skipped returns, in words, the number of chosen events that an action left alone.
func skipped(f, chosen idem.Filter, acted int) string {
	if n := max(len(f.Events), len(chosen.Events)) - acted; n > 0 {
		return fmt.Sprintf("; %d left alone: done, in another state by now, or being processed", n)
	}
	return ""
}

// Erased counts the results of events that were to be erased.
type Erased struct {
	Events  int64 // with data that are gone
	NotDone int64 // left alone: they are to be processed yet, and EraseNotDone is not set
	Busy    int64 // left alone: they are being processed or changed; erase them again in a moment
}

// Erase records, and deletes the stored data of events beyond the fact that they came, in one
// transaction: their bodies, also those that [idem.Common.KeepPayloads] has archived, their
// errors, the history of their attempts, and their traces. It is for a person that asks for
// it, and cannot be undone. A reason is required.
//
// What stays is that the event came: its ids, type, entity, state, times and numbers of attempts, and a hash of
// its body. So it has no effect and stores nothing if it comes again, from the provider or from a broker.
// [idem.Common.Prune] forgets that, too.
//
// Events that are done or discarded are erased. One that is not done is left alone, as it
// may be an unprocessed payment, unless EraseNotDone is set: then it is discarded in the same
// transaction, and later events of its entity are processed. Find the events, show them,
// and give them to Erase; events that came since are left alone:
//
//	events, err := ana.OfKey(ctx, nil, "pay_123", 1000) // or WithID
//	… // show them, and ask
//	erased, err := ana.Erase(ctx, events, "request 17")
//
// The audit trail gets the row keys of the events that were erased, and the reason as it is:
// write no name into that.
//
// It does not reach the application's own tables; messages of an outbox, which are events of another source: erase
// them through an operator of that; what a broker keeps; logs, traces and backups. See docs/private-data.md.
func (o *Operator) Erase(ctx context.Context, events []idem.StoredEvent, reason string) (e Erased, err error) {
	keys, err := o.keysToErase(events, reason)
	if err != nil {
		return e, err
	}
	open := idem.Filter{States: notDone, Events: []string{}}
	if o.EraseNotDone {
		open.Events = keys
	}
	a := store.Action{Actor: o.name, Action: "erase", Source: o.SourceName(), Filter: fmt.Sprintf("%d by row key", len(keys)), Reason: reason}
	err = o.record(ctx, a, keys, func(ctx context.Context, on *acting) (string, error) {
		_, err := o.in.Discard(ctx, open, reason, func(ctx context.Context, tx pgx.Tx, _ []string) error {
			gone, err := store.Erase(ctx, tx, keys, o.EraseNotDone)
			if err != nil {
				return err
			}
			e = Erased{Events: int64(len(gone.Events)), NotDone: gone.Open, Busy: gone.Busy}
			if o.EraseNotDone {
				e.NotDone, e.Busy = 0, gone.Busy+gone.Open
			}
			return on.record(ctx, tx, gone.Events, e.String(), "erased")
		})
		if err != nil {
			e = Erased{}
			return "nothing was erased", fmt.Errorf("operator: erasing events: %w", store.Explain(err))
		}
		return "", nil
	})
	return e, err
}

// keysToErase returns the row keys of events.
func (o *Operator) keysToErase(events []idem.StoredEvent, reason string) ([]string, error) {
	if reason == "" {
		return nil, errors.New("operator: erasing events: give a reason: it is all that says why they are gone")
	}
	keys := make([]string, len(events))
	for n, s := range events {
		if s.Source != o.SourceName() {
			return nil, fmt.Errorf("operator: erasing events: one of source %q was given to an operator of %q: give it to one of its own source", s.Source, o.SourceName())
		}
		keys[n] = store.Event(s.Event).RowKey()
	}
	return keys, nil
}

// String returns the counts as people read them.
func (e Erased) String() string {
	text := fmt.Sprintf("%d erased", e.Events)
	if e.NotDone > 0 {
		text += fmt.Sprintf("; %d left alone: not done", e.NotDone)
	}
	if e.Busy > 0 {
		text += fmt.Sprintf("; %d left alone: being processed or changed", e.Busy)
	}
	return text
}
