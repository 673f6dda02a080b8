package asaas

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Recover gets a webhook's queue going again that Asaas has slowed down or
// stopped, and replays the events that the application parked. Run it once the cause
// is fixed:
//
//	for progress, err := range asaas.Recover(ctx, client, id, asaas.DryRunProbe(token), processor) {
//		if err != nil {
//			return err // not recovered; it says why, and what was changed until then
//		}
//		log.Print(progress)
//	}
//
// It runs the probe, and changes nothing unless that passes. Then it resumes a
// queue that is stopped, or else removes the penalty, and watches Asaas's count
// of failures every [Client].Poll until that was 0 three times in a row. If the
// count has not fallen for a minute after a resume, it also removes the penalty,
// once: the effect of resuming on the penalty is not documented.
//
// events is the application's [idem.Processor] or [idem.Inbox], with the handlers
// registered. Its events that are parked or retrying are replayed then, also where
// nothing is held up at Asaas, and where the queue could not be released or
// watched. The last progress lists the events that are owed after that; see
// [RecoveryOwed]. Without events the last progress is [RecoveryDone], or
// [RecoveryNotNeeded] where nothing is held up, and parked events stay where they
// are: with the default ParkAfter of idem, an outage of a day ends with every event
// parked, and with a queue that is fine.
//
// An error ends it: the webhook is disabled; the probe failed; Asaas stopped the
// queue again, or counts more failures than before; the count has not fallen for
// 10 minutes; ctx has ended; a call failed, which is an [*APIError]. A pause that
// Asaas asks for while it is watched is waited for, up to 10 minutes. Run Recover
// again after a look at the cause. Leaving the loop ends it too, and undoes
// nothing.
//
// Asaas does not tell how many events wait: a long queue may still be on its way
// when Recover is done. It deletes events that have waited for 14 days, and reports
// none of them: the list of events that are owed covers delivered events only. After
// a longer outage run [Reconcile].
func Recover(ctx context.Context, client *Client, webhookID string, probe Probe, events ...EventStore) iter.Seq2[RecoveryProgress, error] {
	return func(yield func(RecoveryProgress, error) bool) {
		r := &recovery{client: client, id: webhookID, probe: probe, events: events, yield: yield, changed: "nothing was changed"}
		if err := r.run(ctx); err != nil && !errors.Is(err, errLeft) {
			yield(RecoveryProgress{}, r.failed(err))
		}
	}
}

func (r *recovery) run(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	q, err := r.look(ctx)
	if err != nil {
		return err
	}
	owed, err := r.owed(ctx)
	if err != nil {
		return err
	}
	if lines := misses(q.webhook, r.events); len(lines) > 0 {
		if err := r.tell(RecoveryProgress{Step: RecoveryMisses, Misses: lines}, q); err != nil {
			return err
		}
	}
	if !q.isHeldUp() {
		if err := r.tell(RecoveryProgress{Step: RecoveryNotNeeded}, q); err != nil {
			return err
		}
	}
	if q.isHeldUp() || len(owed) > 0 {
		if err := r.prove(ctx, q, owed); err != nil {
			return err
		}
	}
	if !q.isHeldUp() {
		return r.settle(ctx, q)
	}
	since, err := r.lastArrival(ctx)
	if err != nil {
		return err
	}
	q, failed := r.release(ctx, q)
	if errors.Is(failed, errLeft) || ctx.Err() != nil {
		return failed
	}
	q.lastArrival = since
	err = r.settle(ctx, q) // events that are parked here do not depend on Asaas's queue
	if failed == nil || errors.Is(err, errLeft) {
		return err
	}
	return failed
}

func (r *recovery) check() error {
	switch {
	case r.probe == nil:
		return errors.New("there is no probe: give asaas.DryRunProbe with the webhook's token, or one of your own")
	case r.client.Poll <= 0:
		return errors.New("the Client's Poll is not positive: set how often to look at the queue")
	}
	return nil
}

// prove runs the probe.
func (r *recovery) prove(ctx context.Context, q queue, owed []Owed) error {
	if err := r.probe(withReceiver(ctx, r.client.Receiver), owedFirst(q.webhook, owed)); err != nil {
		return fmt.Errorf("the probe did not pass: %w", err)
	}
	return r.tell(RecoveryProgress{Step: RecoveryProbed}, q)
}

// release ends the cause that holds the queue up, and watches it.
func (r *recovery) release(ctx context.Context, q queue) (queue, error) {
	change := r.removeBackoff
	if q.interrupted {
		change = r.resume
	}
	if err := change(ctx, q); err != nil {
		return q, err
	}
	return r.watch(ctx, q)
}
