package idem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem/internal/prune"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Prune forgets the source's done, unhandled and discarded events that arrived longer ago than Retention.Events, by
// the database's clock, with their payloads, and returns their number. Pending events stay, and so do parked ones, unless
// Retention.Parked is set. Prune deletes archived bodies after Retention.Payloads, and
// entries of the audit trail after Retention.Audit. It also repairs the traces of events that were deleted by
// hand.
//
// A jump of the clock forgets nothing at once. Prune counts the events of each day, in UTC, and remembers the
// counts. It forgets a whole day, Retention after its end by the clock of an earlier run, at least 23 hours
// ago: so the first run forgets nothing, and an event stays up to three days longer than Retention. If a day
// that is over suddenly has more events, they arrived while the clock was wrong: the day is forgotten
// Retention after Prune has found them. If the clock is behind the time of the last run, Prune returns an
// error.
//
// It reads the tables twice from end to end (there is no index for it, because every delivery would pay for
// that), a megabyte at a time, each committed on its own, and waits for no delivery: run it daily from any
// process. A forgotten event that is delivered again is processed again: so Prune returns an error if
// Retention.Events is shorter than 31 days, unless AllowProcessingTwice is set.
func (i *Inbox) Prune(ctx context.Context) (deleted int64, err error) {
	p, err := i.planPrune(ctx)
	if err != nil {
		return 0, err
	}
	if deleted, err = p.Run(ctx); err != nil {
		return deleted, fmt.Errorf("idem: pruning events: %w", store.Explain(err))
	}
	return deleted, nil
}

// planPrune counts the events, and finds the ones to forget.
func (i *Inbox) planPrune(ctx context.Context) (*prune.Plan, error) {
	if err := i.checkRetention(); err != nil {
		return nil, err
	}
	ages := prune.Ages{Events: i.Retention.Events, Parked: i.Retention.Parked, Archived: i.Retention.Payloads, Actions: i.Retention.Audit}
	p, err := prune.NewPlan(ctx, i.pool, i.source.Name(), ages)
	if err != nil {
		return nil, fmt.Errorf("idem: pruning events: %w", store.Explain(err))
	}
	return p, nil
}

// checkRetention returns an error if Retention would have events processed twice.
func (i *Inbox) checkRetention() error {
	switch r := i.Retention; {
	case r.Events <= 0:
		return errors.New("idem: Retention is zero or less: every event would be forgotten")
	case r.Events < minRetention && !r.AllowProcessingTwice:
		return fmt.Errorf("idem: Retention is %s, and an event that is delivered again after that is processed again: "+
			"set %d days or more, or AllowProcessingTwice if that is meant", r.Events, minRetention/day)
	}
	return nil
}

// Retention holds the ages from which [Inbox.Prune] forgets events, bodies and the trail of people's actions.
type Retention struct {
	// Events is the age of a done, unhandled or discarded event. A provider can send an event again after 31
	// days (Zelta Pay, replayed by hand): a shorter retention would process the event twice, and is refused.
	// Default: 45 days; 1 day for an outbox.
	Events time.Duration

	// AllowProcessingTwice accepts Events of less than 31 days: an event that is delivered again after that is
	// processed again. Default: false.
	AllowProcessingTwice bool

	// Parked is the age of a parked event. Default: 0 (never), because each may be an unprocessed payment.
	Parked time.Duration

	// Payloads is the age of a body that KeepPayloads has archived. Default: 0, archived bodies are deleted
	// together with their events.
	Payloads time.Duration

	// Audit is the age of an entry of the audit trail, which names the person that acted; 0 is never. If the
	// database's role may not delete from idem_audit, the entries stay. Default: 2 years.
	Audit time.Duration
}

const day = 24 * time.Hour

// minRetention is longer than the time in which a provider may deliver an event again.
const minRetention = 31 * day
