package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

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
// The row stays that makes the event's next delivery a duplicate: its account and
// id, its type, the id of its entity, its state, times and numbers of attempts, and a hash
// of its body. So an erased event has no effect and stores nothing if it comes again, from
// the provider or from a broker. [idem.Common.Prune] forgets the row.
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
// Erase reaches the tables of this package, of the operator's source. It does not reach
// the application's own tables; messages of an outbox, which are events of another source, with
// ids and keys of their own: erase them through an operator of that; the data that a
// broker keeps; logs, traces and backups. See docs/private-data.md.
func (o *Operator) Erase(ctx context.Context, events []idem.StoredEvent, reason string) (e Erased, err error) {
	keys, err := o.keysToErase(events, reason)
	if err != nil {
		return e, err
	}
	open := idem.Filter{States: []idem.State{idem.StatePending, idem.StateRetrying, idem.StateUnhandled, idem.StateParked}, Events: []string{}}
	if o.EraseNotDone {
		open.Events = keys
	}
	a := store.Action{Actor: o.name, Action: "erase", Source: o.SourceName(), Filter: fmt.Sprintf("%d by row key", len(keys)), Reason: reason}
	err = o.record(ctx, a, keys, func(ctx context.Context, on *acting) (string, error) {
		_, err := o.DiscardFunc(ctx, open, reason, func(ctx context.Context, tx pgx.Tx, _ []string) error {
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
