package asaas

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
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

// recovery is one run of Recover.
type recovery struct {
	client  *Client
	id      string
	probe   Probe
	events  []EventStore
	yield   func(RecoveryProgress, error) bool
	changed string // for the texts of errors
}

var errLeft = errors.New("the loop was left")

// queue is a webhook's queue as Asaas reports it.
type queue struct {
	webhook     *Webhook
	interrupted bool
	penalized   int
	lastArrival time.Time // before it was released
}

func (q queue) isHeldUp() bool { return q.interrupted || q.penalized > 0 }

func (r *recovery) tell(p RecoveryProgress, q queue) error {
	p.Webhook, p.PenalizedRequests = q.webhook, q.penalized
	if !r.yield(p, nil) {
		return errLeft
	}
	return nil
}

// wait waits. If ctx ends before, the error names the cause.
func (r *recovery) wait(ctx context.Context, d time.Duration, last queue) error {
	if err := r.client.wait(ctx, d); err != nil {
		return fmt.Errorf("%s with %d failures counted, look again: %w", ended(ctx), last.penalized, err)
	}
	return nil
}

// did notes a change.
func (r *recovery) did(what string) {
	if r.changed == "nothing was changed" {
		r.changed = what
		return
	}
	r.changed += ", " + what
}

// perhaps notes a change of which it is not known whether it was made.
func (r *recovery) perhaps(err error, what string) error {
	if e, ok := errors.AsType[*APIError](err); ok && e.Outcome == CallUnknown {
		r.did("it is not known whether " + what)
	}
	return err
}

// failed is the error for a cause, with the changes until then.
func (r *recovery) failed(cause error) error {
	return &recoveryError{
		text: "asaas: Recover(" + failure{key: r.client.key}.clean(r.id) + "): " + r.changed + ": " + strings.TrimPrefix(cause.Error(), "asaas: "),
		err:  cause,
	}
}

// recoveryError names the package once, even if its cause does too.
type recoveryError struct {
	text string
	err  error
}

func (e *recoveryError) Error() string { return e.text }

func (e *recoveryError) Unwrap() error { return e.err }

func (r *recovery) resume(ctx context.Context, q queue) error {
	if err := r.client.Resume(ctx, r.id); err != nil {
		return r.perhaps(err, "the queue was resumed")
	}
	r.changed = "the queue was resumed"
	return r.tell(RecoveryProgress{Step: RecoveryResumed}, q)
}

func (r *recovery) removeBackoff(ctx context.Context, q queue) error {
	if err := r.client.RemoveBackoff(ctx, r.id); err != nil {
		return r.perhaps(err, "the penalty was removed")
	}
	r.did("the penalty was removed")
	return r.tell(RecoveryProgress{Step: RecoveryPenaltyRemoved}, q)
}

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
