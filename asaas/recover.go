package asaas

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Recover gets a webhook's queue going again that Asaas has slowed down or
// stopped. Run it once the cause is fixed:
//
//	for progress, err := range asaas.Recover(ctx, client, id, asaas.DryRun(token)) {
//		if err != nil {
//			return err // not recovered; it says why
//		}
//		log.Print(progress)
//	}
//
// It runs the probe. Only if that passes it changes something, once: it resumes
// a queue that is stopped, or else removes the penalty. Then it watches Asaas's
// count of failures every [Client].Poll until that was 0 three times in a row.
// The last progress is [RecoveryDone] or, where nothing was held up and nothing
// is done, [RecoveryNotNeeded].
//
// An error ends it: the webhook is disabled; the probe failed; Asaas stopped the
// queue again, or counts more failures than before; the count has not fallen for
// 10 minutes; ctx has ended. One of the Client's calls is an [*APIError]. Nothing
// is tried again: run Recover again for that, after a look at the cause. Leaving
// the loop ends it too, and undoes nothing.
//
// Asaas does not tell how many events wait: a long queue may still be on its way
// when Recover is done.
func Recover(ctx context.Context, client *Client, webhookID string, probe Probe) iter.Seq2[RecoveryProgress, error] {
	return func(yield func(RecoveryProgress, error) bool) {
		r := &recovery{client: client, id: webhookID, probe: probe, yield: yield, changed: "nothing was changed"}
		if err := r.run(ctx); err != nil && !errors.Is(err, errLeft) {
			yield(RecoveryProgress{}, err)
		}
	}
}

const (
	quietLooks = 3 // without a failure, in a row
	stallLimit = 10 * time.Minute
)

// recovery is one run of Recover.
type recovery struct {
	client  *Client
	id      string
	probe   Probe
	yield   func(RecoveryProgress, error) bool
	changed string // what errors say of it
}

var errLeft = errors.New("the loop was left")

func (r *recovery) run(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	q, err := r.look(ctx)
	if err != nil {
		return err
	}
	if !q.interrupted && q.penalized == 0 {
		return r.tell(RecoveryNotNeeded, q)
	}
	if err := r.probe(ctx, q.webhook); err != nil {
		return r.failed(fmt.Errorf("the probe did not pass: %w", err))
	}
	if err := r.tell(RecoveryProbed, q); err != nil {
		return err
	}
	if err := r.release(ctx, q); err != nil {
		return err
	}
	return r.watch(ctx, q)
}

func (r *recovery) check() error {
	switch {
	case r.probe == nil:
		return r.failed(errors.New("there is no probe: give asaas.DryRun with the webhook's token, or one of your own"))
	case r.client.Poll <= 0:
		return r.failed(errors.New("the Client's Poll is not positive: set how often to look at the queue"))
	}
	return nil
}

// release makes the one change.
func (r *recovery) release(ctx context.Context, q queue) error {
	if q.interrupted {
		if err := r.client.Resume(ctx, r.id); err != nil {
			return err
		}
		r.changed = "the queue was resumed"
		return r.tell(RecoveryResumed, q)
	}
	if err := r.client.RemoveBackoff(ctx, r.id); err != nil {
		return err
	}
	r.changed = "the penalty was removed"
	return r.tell(RecoveryPenaltyRemoved, q)
}

// watch looks until there was no failure for a while.
func (r *recovery) watch(ctx context.Context, last queue) error {
	fell := time.Now()
	for quiet := 0; quiet < quietLooks; {
		if err := r.wait(ctx, last); err != nil {
			return err
		}
		q, err := r.look(ctx)
		if err != nil {
			return err
		}
		if q.penalized < last.penalized {
			fell = time.Now()
		}
		if err := q.relapse(last, time.Since(fell)); err != nil {
			return r.failed(err)
		}
		if q.penalized == 0 {
			quiet++
		}
		if err := r.tell(RecoveryWatching, q); err != nil {
			return err
		}
		last = q
	}
	return r.tell(RecoveryDone, last)
}

func (r *recovery) wait(ctx context.Context, last queue) error {
	timer := time.NewTimer(r.client.Poll)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return r.failed(fmt.Errorf("the time was over with %d failures counted, look again: %w", last.penalized, context.Cause(ctx)))
	}
}

// queue is what Asaas tells of a webhook's queue.
type queue struct {
	webhook     *Webhook
	interrupted bool
	penalized   int
}

// relapse is what ends a recovery: what is wrong with a queue that was better
// before, or has stayed the same for too long.
func (q queue) relapse(before queue, same time.Duration) error {
	switch {
	case q.interrupted:
		return errors.New("the queue is stopped again: deliveries still fail; see the application's log, then run it again")
	case q.penalized > before.penalized:
		return fmt.Errorf("there are new failures, Asaas counts %d after %d: deliveries still fail; see the application's log, then run it again",
			q.penalized, before.penalized)
	case q.penalized > 0 && same >= stallLimit:
		return fmt.Errorf("the count of failures is still %d, no less for %s: see in the webhook's log at Asaas whether it delivers", q.penalized, stallLimit)
	}
	return nil
}

// look asks Asaas for the queue. A disabled webhook is an error.
func (r *recovery) look(ctx context.Context) (queue, error) {
	w, err := r.client.Webhook(ctx, r.id)
	switch {
	case err != nil && ctx.Err() != nil:
		return queue{}, r.failed(fmt.Errorf("the time was over, look again: %w", context.Cause(ctx)))
	case err != nil:
		return queue{}, err
	case w.Interrupted.IsZero() || w.PenalizedRequestsCount.IsZero(): // what is not told must not pass for all is well
		return queue{}, r.failed(errors.New("the answer does not tell whether the queue is held up: look for a newer version of this module"))
	case !w.Enabled.Or(true):
		return queue{}, r.failed(errors.New("the webhook is disabled: Asaas makes no events for it, and those of this time never come; " +
			"enable it with UpdateWebhook or at Asaas, and run it again for what waited before"))
	}
	return queue{w, w.Interrupted.Or(false), int(w.PenalizedRequestsCount.Or(0))}, nil
}

// failed is the error for a cause, with what was changed until then.
func (r *recovery) failed(cause error) error {
	return fmt.Errorf("asaas: Recover(%s): %s: %w", failure{key: r.client.key}.clean(r.id), r.changed, cause)
}

func (r *recovery) tell(step RecoveryStep, q queue) error {
	if !r.yield(RecoveryProgress{Step: step, Webhook: q.webhook, PenalizedRequests: q.penalized}, nil) {
		return errLeft
	}
	return nil
}
