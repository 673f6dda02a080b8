package asaas

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	quietLooks   = 3 // without a failure, in a row
	relieveAfter = time.Minute
	stallLimit   = 10 * time.Minute
)

// watch looks at the queue until Asaas has counted no failure in quietLooks looks in a row. It
// returns the last look.
func (r *recovery) watch(ctx context.Context, last queue) (queue, error) {
	var same time.Duration // without a fall of the count
	relieved := !last.interrupted
	for quiet := 0; quiet < quietLooks; {
		if err := r.wait(ctx, r.client.Poll, last); err != nil {
			return last, err
		}
		q, err := r.look(ctx)
		if err != nil {
			return last, err
		}
		if same += r.client.Poll; q.penalized < last.penalized {
			same = 0
		}
		if err := q.relapse(last, same); err != nil {
			return last, err
		}
		if q.penalized == 0 {
			quiet++
		}
		if err := r.tell(RecoveryProgress{Step: RecoveryWatching}, q); err != nil {
			return last, err
		}
		if !relieved && q.penalized > 0 && same >= relieveAfter {
			if err := r.removeBackoff(ctx, q); err != nil {
				return last, err
			}
			relieved, same = true, 0
		}
		last = q
	}
	return last, r.tell(RecoveryProgress{Step: RecoveryDone}, last)
}

// relapse returns the error that ends a recovery: the fault of a queue that was better
// before, or has stayed the same for too long.
func (q queue) relapse(before queue, same time.Duration) error {
	switch {
	case q.interrupted:
		return errors.New("the queue is stopped again: deliveries still fail; see the application's log, then run it again")
	case q.penalized > before.penalized:
		return fmt.Errorf("there are new failures, Asaas counts %d after %d: deliveries still fail; see the application's log, then run it again",
			q.penalized, before.penalized)
	case q.penalized > 0 && same >= stallLimit:
		return fmt.Errorf("the count of failures is still %d, no less for %s: see in the webhook's log at Asaas whether it delivers; "+
			"if it does, all is well, and the count goes in time; if not, remove the penalty once more, and then ask Asaas", q.penalized, stallLimit)
	}
	return nil
}

// look asks Asaas for the queue. A disabled webhook is an error.
func (r *recovery) look(ctx context.Context) (queue, error) {
	w, err := r.webhook(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return queue{}, fmt.Errorf("%s, look again: %w", ended(ctx), context.Cause(ctx))
	case err != nil:
		return queue{}, err
	case w.Interrupted.IsZero() || w.PenalizedRequestsCount.IsZero(): // a field that is missing must not pass for all is well
		return queue{}, errNotTold
	case !w.Enabled.Or(true):
		return queue{}, errors.New("the webhook is disabled: Asaas makes no events for it, and those of this time never come; " +
			"enable it at Asaas, and run it again for what waited before")
	}
	return queue{webhook: w, interrupted: w.Interrupted.Or(false), penalized: int(w.PenalizedRequestsCount.Or(0))}, nil
}

// webhook asks Asaas for the webhook. If Asaas asks for a pause, it waits that long and
// asks again, once.
func (r *recovery) webhook(ctx context.Context) (*Webhook, error) {
	w, err := r.client.Webhook(ctx, r.id)
	if e, ok := errors.AsType[*APIError](err); ok && e.isPause() && e.RetryAfter <= stallLimit && r.client.wait(ctx, e.RetryAfter) == nil {
		return r.client.Webhook(ctx, r.id)
	}
	return w, err
}
