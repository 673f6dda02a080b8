package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

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

// CountScope counts the stored events of a scope, in any state: those that
// [Operator.Rescope] would move.
func (o *Operator) CountScope(ctx context.Context, scope string) (int64, error) {
	n, err := store.CountAccount(ctx, o.Pool(), store.Account{Source: o.SourceName(), Scope: scope})
	if err != nil {
		return 0, fmt.Errorf("operator: counting the events of a scope: %w", store.Explain(err))
	}
	return n, nil
}

// Rescope records, and moves all that is stored of one scope to another account, in
// one transaction: events in every state, their bodies and their order, and the
// entries of the audit trail about them. It returns how many events that were.
//
// An event is recognized by its source, its scope and its id. So an account that gets
// a scope, or another one, and a source that gets another name have every event of
// before again as a new one: one that the provider delivers again is done twice.
// Rescope prevents that. Do it in this order:
//
//  1. Stop every process that receives or processes events of the source. Deliveries
//     fail meanwhile, and the provider repeats them.
//  2. See that nothing of the old name is elsewhere: the consumers of a relay have received
//     all that was published. An event that comes from there
//     later has the old name, and is stored under that.
//  3. Rescope.
//  4. Start the version that uses the new name.
//
// It waits up to 10 seconds for transactions that store or process events, and has new
// ones wait for it. It moves nothing and returns an error while workers of the source
// are alive, or where the target has events or bodies with the same ids: the error
// names them, and the remedy. It cannot see an idle process without workers. Its time is
// that of updating the rows.
func (o *Operator) Rescope(ctx context.Context, scope string, to Account, reason string) (moved int64, err error) {
	from := Account{o.SourceName(), scope}
	if err := checkRescope(from, to); err != nil {
		return 0, err
	}
	err = o.Record(ctx, "rescope", from.String()+" to "+to.String(), reason, func(ctx context.Context) (string, error) {
		err := pgtx.Change(ctx, o.Pool(), func(ctx context.Context, tx pgx.Tx) (err error) { // it sees rows that were committed while it waited
			moved, err = rescope(ctx, tx, store.Account(from), store.Account(to))
			return err
		})
		switch {
		case errors.Is(err, pgtx.ErrUnknown):
			return "whether all or nothing was moved is unknown", fmt.Errorf("operator: moving %s to %s: %w", from, to, store.Explain(err))
		case err != nil:
			return "nothing was moved", fmt.Errorf("operator: moving %s to %s: %w", from, to, store.Explain(err))
		}
		return fmt.Sprintf("%d moved", moved), nil
	})
	return moved, err
}

// maxName is the length in bytes of the longest scope and name that are stored.
const maxName = 255

func nameable(s string) bool { return store.Storable(s, maxName) == s }

func checkRescope(from, to Account) error {
	switch {
	case to.Source == "" || strings.Contains(to.Source, "/") || !nameable(to.Source):
		return fmt.Errorf("operator: the source to move events to is %q: give the name that the receiver has", to.Source)
	case !nameable(to.Scope):
		return fmt.Errorf("operator: the scope to move events to has %d bytes, or is no text: give one of at most %d", len(to.Scope), maxName)
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
	return store.Rescope(ctx, tx, from, to)
}
