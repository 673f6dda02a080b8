package asaas

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// flush compares the charges that were read since the last time, and reports the result.
func (r *reconciliation) flush(ctx context.Context) error {
	if r.next == r.cursor {
		return nil
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	r.batch, r.cursor = nil, r.next
	if r.cursor.Scan == len(r.scans) {
		return nil // ReconcileDone follows
	}
	return r.tell(ReconcileProgress{Step: ReconcileCompared})
}

// compare reports the differences of a batch, all with the cursor before it: a run that
// ends among them is repeated from there.
func (r *reconciliation) compare(ctx context.Context) error {
	stored, err := r.stored(ctx)
	if err != nil {
		return err
	}
	for _, f := range r.batch {
		r.count.Charges++
		d, err := r.difference(ctx, f, stored[f.payment.ID])
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		r.count.Differences++
		if err := r.tell(ReconcileProgress{Step: ReconcileDifference, Difference: d}); err != nil {
			return err
		}
	}
	return nil
}

// stored are the events of the batch by their charges.
func (r *reconciliation) stored(ctx context.Context) (map[string][]idem.StoredEvent, error) {
	var keys []string
	for _, f := range r.batch {
		keys = append(keys, f.payment.ID)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	all, err := r.Events.Arrivals(ctx, r.Scope, keys, r.Until.Add(-r.Retention))
	if err != nil {
		return nil, fmt.Errorf("the stored events are not known, resume at the last cursor: %w", err)
	}
	out := make(map[string][]idem.StoredEvent)
	for _, e := range all {
		out[e.Key] = append(out[e.Key], e)
	}
	return out, nil
}

// difference is nil if there is nothing to report of a charge.
func (r *reconciliation) difference(ctx context.Context, f found, stored []idem.StoredEvent) (*Difference, error) {
	p := f.payment
	d := &Difference{
		Charge: p.ID, State: StateOf(p), Value: p.Value, BillingType: p.BillingType,
		ExternalReference: p.ExternalReference.Or(""), FoundBy: f.by, Payment: p,
	}
	for _, e := range stored {
		if e.State == idem.StateDone {
			d.Handled = append(d.Handled, EventType(e.Type))
		} else {
			d.Waiting = append(d.Waiting, EventType(e.Type))
		}
	}
	isRecent := r.judge(d, func(t EventType, day time.Time) bool { return isStored(stored, t, day) })
	if r.Says != nil {
		says, known, err := r.Says(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("what the application says of %s is not known, resume at the last cursor: %w", clean(p.ID, r.client.secrets("")), err)
		}
		d.Application, d.Known = says, &known
	}
	saysOtherwise := d.Known != nil && *d.Known && d.Application != "" && d.Application != d.State
	switch {
	case d.Known != nil && *d.Known && d.Application == d.State: // it agrees, however it came to know
		return nil, nil
	case isRecent && len(d.Missing) == 0:
		r.count.Recent++
		return nil, nil
	case len(d.Missing) == 0 && len(d.NotKnown) == 0 && !saysOtherwise:
		return nil, nil
	}
	return d, nil
}

// judge notes which of the events that must have come are not stored, and reports
// whether one is left out that may be on its way.
func (r *reconciliation) judge(d *Difference, isStored func(EventType, time.Time) bool) (isRecent bool) {
	from, _ := r.window()
	settled, kept := dayIn(r.Until.Add(-r.Grace)), r.Until.Add(-r.Retention)
	for _, t := range expectedOf(d.Payment) {
		day := dayOfEvent(d.Payment, t)
		if !slices.Contains(r.types, t) || isStored(t, day) {
			continue
		}
		switch {
		case day.IsZero() && dayOf(d.Payment.DateCreated).Before(kept): // it may be as old as the charge
			d.NotKnown = append(d.NotKnown, t)
		case day.IsZero():
			d.Missing = append(d.Missing, t)
		case dayIn(day) < from: // before the gap, when every event arrived
		case dayIn(day) >= settled:
			isRecent = true
		case day.Before(kept):
			d.NotKnown = append(d.NotKnown, t)
		default:
			d.Missing = append(d.Missing, t)
		}
		if !day.IsZero() && (d.Since.IsZero() || day.Before(d.since)) && (slices.Contains(d.Missing, t) || slices.Contains(d.NotKnown, t)) {
			d.Since, d.since = Date(dayIn(day)), day
		}
	}
	return isRecent
}

// isStored reports whether an event of a type is stored. That of an earlier refund is not the one of the
// newest refund, which was made on day.
func isStored(stored []idem.StoredEvent, t EventType, day time.Time) bool {
	isRefund := t == EventPaymentRefunded || t == EventPaymentPartiallyRefunded || t == EventPaymentRefundInProgress
	return slices.ContainsFunc(stored, func(e idem.StoredEvent) bool {
		return EventType(e.Type) == t && (!isRefund || e.OccurredAt.IsZero() || !e.OccurredAt.Before(day))
	})
}
