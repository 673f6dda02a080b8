package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/internal/lang"
)

// Pause is a decision that events are not processed until a time: see [Operator.PlanPause].
type Pause struct {
	Type   string    `json:"type,omitempty"`   // of the events; "" is every type
	Key    string    `json:"entity,omitempty"` // of the events, in all accounts; "" is every entity
	At     time.Time `json:"at"`
	Until  time.Time `json:"until"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
}

// String says which events are paused, as it follows "events": "of type PAYMENT_CREATED", for example.
func (p Pause) String() string {
	switch {
	case p.Type == "" && p.Key == "":
		return "of every type"
	case p.Key == "":
		return "of type " + p.Type
	case p.Type == "":
		return "of " + p.Key
	}
	return "of type " + p.Type + " of " + p.Key
}

func (p Pause) row() store.Pause { return store.Pause(p) }

// MaxPause is the longest pause.
const MaxPause = 7 * 24 * time.Hour

// PlanPause plans to have no worker and no first try begin an event of p's Type and Key for d, which is at most
// [MaxPause]. The handlers that are running go on to their ends. Deliveries are stored meanwhile and answered 200;
// where no workers run, a first try is answered 503. Later events of an entity wait for those that are paused. At the
// end, and after [Operator.PlanResume], all are due. A pause takes the place of one of the same Type and Key. Do needs
// a reason.
//
// The plan's Count is that of the events that are pending now.
func (o *Operator) PlanPause(ctx context.Context, p Pause, d time.Duration) (*Plan, error) {
	if d <= 0 || d > MaxPause {
		return nil, fmt.Errorf("operator: pause: it would last %s: give it an end, at most %s from now", d, lang.English.Age(MaxPause))
	}
	plan, err := o.planPause(ctx, "pause", "paused", p, func(ctx context.Context, tx pgx.Tx, reason string) (string, error) {
		now := p.row()
		now.Actor, now.Reason = o.name, store.Storable(reason, maxRecorded)
		until, err := store.BeginPause(ctx, tx, o.SourceName(), now, d)
		return "until " + until.UTC().Format(time.RFC3339), err
	})
	if err != nil {
		return nil, err
	}
	plan.Effect = []string{
		fmt.Sprintf("No event %s would begin for %s; what is running goes on to its end. Deliveries are stored and answered 200 meanwhile.", p, lang.English.Age(d)),
		"Later events of the same entities wait for them. Then all are due, in their order.",
	}
	begin := plan.do
	plan.do = func(ctx context.Context, reason string) (Result, error) {
		if reason == "" {
			return Result{}, errors.New("operator: pause: give a reason, for the next person")
		}
		return begin(ctx, reason)
	}
	if err := o.findWorkers(ctx); errors.Is(err, ErrNoWorkers) {
		plan.Effect = append(plan.Effect, "No workers are alive: a program that works first without workers answers these deliveries 503, and the provider stops its queue in the end.")
	}
	return plan, nil
}

// PlanResume plans to end the pause of p's Type and Key: the events are due then. Do returns [ErrNotPaused] if there is
// none of exactly these.
func (o *Operator) PlanResume(ctx context.Context, p Pause) (*Plan, error) {
	plan, err := o.planPause(ctx, "resume", "resumed", p, func(ctx context.Context, tx pgx.Tx, _ string) (string, error) {
		ended, err := store.EndPause(ctx, tx, o.SourceName(), p.row())
		if err == nil && !ended {
			err = ErrNotPaused
		}
		return "", err
	})
	if err != nil {
		return nil, err
	}
	plan.Effect = []string{fmt.Sprintf("Events %s would be due now.", p)}
	return plan, nil
}

// ErrNotPaused is the error of a resume of what is not paused.
var ErrNotPaused = errors.New("there is no such pause: it is over, or was begun for other events")

// planPause plans to begin or to end a pause, and to record that.
func (o *Operator) planPause(
	ctx context.Context, action, did string, p Pause, change func(ctx context.Context, tx pgx.Tx, reason string) (result string, err error),
) (*Plan, error) {
	n, err := query(ctx, o, "counting events", func(ctx context.Context, db *pgxpool.Pool) (int64, error) {
		return store.CountPaused(ctx, db, o.SourceName(), p.row())
	})
	if err != nil {
		return nil, err
	}
	plan := &Plan{Action: action, Did: did, Always: true, Atomic: true, o: o, Count: n}
	plan.do = func(ctx context.Context, reason string) (r Result, err error) {
		err = o.Record(ctx, action, "events "+p.String(), reason, func(ctx context.Context) (result string, err error) {
			err = pgtx.Change(ctx, o.in.Pool(), func(ctx context.Context, tx pgx.Tx) (err error) {
				result, err = change(ctx, tx, reason)
				return err
			})
			if err != nil {
				return "", fmt.Errorf("operator: %s: %w", action, store.Explain(err))
			}
			return result, nil
		})
		if err != nil {
			return r, err
		}
		// Again, for claims that began before the pause was ended. If this fails, the workers do it within a minute.
		_, _ = query(ctx, o, "waking events", func(ctx context.Context, db *pgxpool.Pool) (int64, error) {
			return store.WakePaused(ctx, db, o.SourceName())
		})
		o.in.Wake()
		r.Acted = n
		return r, nil
	}
	return plan, nil
}

// Pauses returns the pauses of the source that are in effect, the oldest first.
func (o *Operator) Pauses(ctx context.Context) ([]Pause, error) {
	rows, err := query(ctx, o, "listing pauses", func(ctx context.Context, db *pgxpool.Pool) ([]store.Pause, error) {
		return store.ListPauses(ctx, db, o.SourceName())
	})
	return each(rows, func(p store.Pause) Pause { return Pause(p) }), err
}

// pauseOf returns the pause that lasts the longest of those that an event is in; the zero Pause if it is in none.
func pauseOf(all []store.Pause, e store.Event) (found Pause) {
	for _, p := range all {
		if (p.Type == "" || p.Type == e.Type) && (p.Key == "" || p.Key == e.Key) && p.Until.After(found.Until) {
			found = Pause(p)
		}
	}
	return found
}

// refusePaused returns an error if some of the plan's events are paused.
func (o *Operator) refusePaused(ctx context.Context, p *Plan, instead string) error {
	paused, err := query(ctx, o, p.Action, func(ctx context.Context, db *pgxpool.Pool) ([]string, error) {
		return store.FindPaused(ctx, db, o.SourceName(), p.Filter.Events)
	})
	if err != nil || len(paused) == 0 {
		return err
	}
	first, err := o.ByKey(ctx, paused[:1])
	if err != nil || len(first) == 0 {
		return err
	}
	pauses, err := query(ctx, o, p.Action, func(ctx context.Context, db *pgxpool.Pool) ([]store.Pause, error) {
		return store.ListPauses(ctx, db, o.SourceName())
	})
	if err != nil {
		return err
	}
	e := first[0].Event
	why := pauseOf(pauses, store.Event(e))
	return fmt.Errorf("operator: %s: %d of these events are paused, first %s, %s, until %s, by %s: %s: end it with idem resume%s",
		p.Action, len(paused), e.ID, e.Type, why.Until.UTC().Format(time.RFC3339), why.Actor, why.Reason, instead)
}
