package asaas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Reconcile finds the charges of which an event never came. It is a report, and
// changes nothing, neither at Asaas nor in the database. Run it after the queue was
// stopped for more than 14 days, or the webhook was disabled, and an hour or more
// after [Recover]:
//
//	for progress, err := range asaas.Reconcile(ctx, client, asaas.Reconciliation{
//		WebhookID: id, Events: processor, Since: stopped, Open: openCharges, Says: says,
//	}) {
//		if err != nil {
//			return err
//		}
//		if d := progress.Difference; d != nil {
//			repair(ctx, d) // keyed by d.Charge and d.State
//		}
//		save(progress.Cursor)
//	}
//
// It reads Asaas's record: the charges that were made or paid in the gap, confirmed
// cards, refunds, chargebacks and dunning that have not ended, movements of money
// for charges of any age (the account's statement), and each charge of Open.
// It compares that with the events that are stored, in any state, and with the
// application's own record. A charge is reported if an event that its state proves was not
// stored, or if the application knows the charge and says otherwise. It is not
// reported if the application agrees, however it came to know.
//
// Asaas keeps no history. An event that no state proves is not found:
// PAYMENT_UPDATED and events about views, refusals and splits; one of two visits to a
// state, or of two refunds on one day; a charge that was overdue and is paid; one that was
// removed, or became overdue, and is not in Open. A chargeback's dispute and a removal have no
// time, so that Grace cannot hold for them.
//
// Nothing is compared while the queue is stopped or penalized: the events may come.
// The only progress is [ReconcileHeldUp] then. Asaas does not tell how many events
// wait in a queue that delivers: after a resume, let it deliver them first. An event
// that comes late has to meet the repair: key the effect by charge and state.
//
// A run ends with [ReconcileDone], or with [ReconcilePaused] once it has made its
// Calls, or Asaas wants a pause: give the last Cursor to another run then, as after an
// error or a crash. Such a run may report a difference for the second time.
func Reconcile(ctx context.Context, client *Client, settings Reconciliation) iter.Seq2[ReconcileProgress, error] {
	return func(yield func(ReconcileProgress, error) bool) {
		r := newReconciliation(client, settings, yield)
		err := r.run(ctx)
		if err == nil || errors.Is(err, errLeft) {
			return
		}
		if _, ok := errors.AsType[*APIError](err); !ok {
			err = fmt.Errorf("asaas: Reconcile: %w", err)
		}
		yield(ReconcileProgress{}, err)
	}
}

func newReconciliation(client *Client, s Reconciliation, yield func(ReconcileProgress, error) bool) *reconciliation {
	s.Grace = cmp.Or(s.Grace, time.Hour)
	s.Retention = cmp.Or(s.Retention, 45*24*time.Hour)
	s.Calls = cmp.Or(s.Calls, 1000)
	s.Pause = cmp.Or(s.Pause, 250*time.Millisecond)
	if s.Until.IsZero() {
		s.Until = time.Now()
	}
	r := &reconciliation{Reconciliation: s, client: client, yield: yield, seen: make(map[string]bool)}
	r.cursor = ReconcileCursor{Since: s.Since, Until: s.Until}
	if s.Resume != nil {
		r.cursor = *s.Resume
		r.Since, r.Until = s.Resume.Since, s.Resume.Until
	}
	r.scans = r.allScans() // of the gap between these
	r.next = r.cursor
	r.open = slices.Compact(slices.Sorted(slices.Values(s.Open)))
	return r
}

func (r *reconciliation) check() error {
	switch {
	case r.Events == nil:
		return errors.New("there is no Events: give the application's idem.Processor or idem.Inbox")
	case r.Since.IsZero():
		return errors.New("there is no Since: give the time before which every event is known to have arrived")
	case !r.Since.Before(r.Until):
		return errors.New("the gap ends before it begins: give a Since that lies before Until")
	case r.Calls < 200:
		return errors.New("there are too few Calls to come on: give 200 or more")
	case r.Pause < 0 || r.Grace < 0 || r.Retention < 0:
		return errors.New("a time is negative: see Pause, Grace and Retention")
	case r.cursor.Scan < 0 || r.cursor.Scan > len(r.scans) || r.cursor.Offset < 0:
		return errors.New("the cursor to resume at is of another version: begin anew")
	}
	return nil
}

func (r *reconciliation) run(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	err := r.work(ctx)
	if err == nil || errors.Is(err, errLeft) {
		return err
	}
	if left := r.flush(ctx); left != nil { // the charges of whole pages are not lost
		return cmp.Or(left, err)
	}
	if stop, ok := errors.AsType[*pauseWanted](err); ok {
		return r.tell(ReconcileProgress{Step: ReconcilePaused, Again: stop.d})
	}
	return err
}

// work does one scan after the other.
func (r *reconciliation) work(ctx context.Context) error {
	w, err := call(ctx, r, func() (*Webhook, error) { return r.client.getWebhook(ctx, "Reconcile", r.WebhookID) })
	switch {
	case err != nil:
		return err
	case w.Interrupted.IsZero() || w.PenalizedRequestsCount.IsZero():
		return errNotTold
	case w.Interrupted.Or(false) || w.PenalizedRequestsCount.Or(0) > 0:
		return r.tell(ReconcileProgress{Step: ReconcileHeldUp})
	}
	if r.types = r.Types; r.types == nil {
		r.types = w.Events.Or(nil)
	}
	if len(r.types) == 0 {
		return errors.New("the webhook subscribes to no event type: give Types, those that the application needs")
	}
	for r.next.Scan < len(r.scans) {
		if err := r.do(ctx, r.scans[r.next.Scan]); err != nil {
			return err
		}
		r.next = ReconcileCursor{Since: r.Since, Until: r.Until, Scan: r.next.Scan + 1}
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	return r.tell(ReconcileProgress{Step: ReconcileDone})
}
