package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Lookup is an event with the cause for which it is not done: see [Operator.Lookup]. [Lookup.Why]
// and [Lookup.Says] put it in words.
type Lookup struct {
	idem.StoredEvent

	Failures []Failure // its last attempts that failed, five at most, the oldest first; none once it is done
	Claim    Claim     // of the workers that process it; zero when none do
	First    *Lookup   // the event of its entity that it waits for; nil when it waits for none
	Behind   int64     // events of its entity that wait for it
	Held     bool      // parked for no other reason than that it waited; its turn has come if First is nil
	Workers  int       // of its source that are alive, in all processes: calls of [idem.Inbox.Run]
	At       time.Time // when all this was so, by the database's clock
}

// Failure is an attempt that failed.
type Failure struct {
	At    time.Time
	Error string // its first 300 characters
}

// Claim is which process works on an event. A delivery or a replay that processes one has
// no claim.
type Claim struct {
	Since  time.Time
	Host   string // of the process; "" when its sign of life is deleted
	PID    int
	SeenAt time.Time // its last sign of life
	Alive  bool      // whether that is so new that it lives; else other workers go on with the event within 12 seconds
}

// Lookup returns an event by its account and id, in any state, with the event that it waits
// for. ok is false if there is no such event.
func (o *Operator) Lookup(ctx context.Context, scope, id string) (l Lookup, ok bool, err error) {
	l, err = timed(ctx, func(ctx context.Context) (l Lookup, err error) {
		one := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly} // one state of the tables
		err = pgx.BeginTxFunc(ctx, o.Pool(), one, func(tx pgx.Tx) error {
			l, err = o.lookUp(ctx, tx, store.Event{Source: o.SourceName(), Scope: scope, ID: id}.RowKey())
			return err
		})
		return l, err
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Lookup{}, false, nil
	case err != nil:
		return Lookup{}, false, fmt.Errorf("operator: looking an event up: %w", store.Explain(err))
	}
	return l, true, nil
}

// ByKey returns events by their row keys, in that order, in any state, without their
// payloads. Those that are not stored any more are left out.
func (o *Operator) ByKey(ctx context.Context, keys []string) ([]idem.StoredEvent, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	rows, err := timed(ctx, func(ctx context.Context) ([]store.Row, error) { return store.GetAll(ctx, o.Pool(), keys) })
	if err != nil {
		return nil, fmt.Errorf("operator: reading events: %w", store.Explain(err))
	}
	all := make([]idem.StoredEvent, len(rows))
	for n, r := range rows {
		all[n] = storedEvent(r)
	}
	return all, nil
}

// lookUp looks an event up, and the one that it waits for.
func (o *Operator) lookUp(ctx context.Context, tx pgx.Tx, key string) (l Lookup, err error) {
	own, err := store.FindWhereabouts(ctx, tx, key)
	if err != nil {
		return l, err
	}
	alive, err := store.LivingWorkers(ctx, tx, o.SourceName())
	if err != nil {
		return l, err
	}
	l = lookupOf(own, len(alive))
	if own.First == "" || own.First == key {
		return l, nil
	}
	first, err := store.FindWhereabouts(ctx, tx, own.First)
	if errors.Is(err, pgx.ErrNoRows) { // its row was deleted by hand
		first, err = store.Whereabouts{Now: own.Now}, nil
		first.Event = store.EventOf(own.First)
	}
	l.First = new(lookupOf(first, len(alive)))
	return l, err
}

func lookupOf(w store.Whereabouts, workers int) Lookup {
	l := Lookup{StoredEvent: storedEvent(w.Row), Behind: w.Behind, Held: w.Held, Workers: workers, At: w.Now}
	for _, f := range w.Failures {
		l.Failures = append(l.Failures, Failure(f))
	}
	if c := w.Claim; !c.At.IsZero() {
		l.Claim = Claim{Since: c.At, Host: c.Host, PID: c.PID, Alive: c.Alive}
		if c.Host != "" {
			l.Claim.SeenAt = w.Now.Add(-c.Silent)
		}
	}
	return l
}

func storedEvent(r store.Row) idem.StoredEvent {
	return idem.StoredEvent{
		Event: idem.Event(r.Event), State: idem.State(r.State), Attempts: r.Attempts, Crashes: r.Crashes,
		LastError: r.LastError, ReceivedAt: r.ReceivedAt, DueAt: r.DueAt, DoneAt: r.DoneAt, ConflictAt: r.ConflictAt, Carrier: r.Trace,
	}
}
