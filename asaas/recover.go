package asaas

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode"

	"github.com/paghooks/paghooks/asaas/internal/shown"
	"github.com/paghooks/paghooks/idem"
)

// Recover gets a webhook's queue going again that Asaas has slowed down or
// stopped, and replays the events that the application parked. Run it once the cause
// is fixed:
//
//	for progress, err := range asaas.Recover(ctx, client, id, token, inbox) {
//		if err != nil {
//			return err // not recovered; it says why, and what was changed until then
//		}
//		log.Print(progress)
//	}
//
// First it delivers the event of a canary to the webhook's own URL, with token, the
// webhook's; see package canary. That proves the way (network, TLS, proxies, token) and
// that the application can write to Postgres, and runs no handler. If an event that
// failed is stored, [Client].Try is asked whether the application is to try its
// handlers with the oldest, which Asaas will send first. Recover changes nothing unless
// the canary arrived, and the handlers passed if they were tried.
//
// Then it resumes a queue that is stopped, or else removes the penalty, and watches
// Asaas's count of failures every [Client].Poll until that was 0 three times in a row.
// If the count has not fallen for a minute after a resume, it also removes the penalty,
// once: the effect of resuming on the penalty is not documented.
//
// The count may be a history that never falls. So a count that has not changed for a minute is
// a recovery, too, if the application has stored an event since the release: see
// [RecoveryProgress].Delivered. If several webhooks deliver to the inbox, that may be an event of
// another one: then see in this webhook's log at Asaas whether it delivers.
//
// events is the application's [idem.Inbox], with the handlers
// registered. Its events that are parked are replayed then, also where
// nothing is held up at Asaas, and where the queue could not be released or
// watched. The last progress lists the events that are owed after that; see
// [RecoveryOwed]. If events is nil the last progress is [RecoveryDone], or
// [RecoveryNotNeeded] where nothing is held up, and parked events stay where they
// are: with the default MaxAttempts of idem, a handler that fails for a day leaves every
// event parked, and a queue that is fine.
//
// An error ends it: the webhook is disabled; the canary did not arrive, or the handlers
// failed; Asaas stopped the queue again, or counts more failures than before; for 10
// minutes the count has not fallen and no event has come, or events is nil or could not be asked; ctx has ended;
// a call failed, which is an [*APIError].
// A pause that Asaas asks for while it is watched is waited for, up to 10 minutes. Run
// Recover again after a look at the cause. Leaving the loop ends it too, and undoes
// nothing.
//
// The canary comes from the machine that runs Recover, not from Asaas's addresses: a
// receiver with [Dispatcher].AllowFrom must also take that address, as it sees it.
//
// Asaas does not tell how many events wait: a long queue may still be on its way
// when Recover is done. It deletes events that have waited for 14 days, and reports
// none of them: the list of events that are owed covers delivered events only. After
// a longer outage run Reconcile of package charges.
func Recover(ctx context.Context, client *Client, webhookID, token string, events EventStore) iter.Seq2[RecoveryProgress, error] {
	return func(yield func(RecoveryProgress, error) bool) {
		r := &recovery{client: client, id: webhookID, token: token, events: events, yield: yield, changed: "nothing was changed"}
		if err := r.run(ctx); err != nil && !errors.Is(err, errLeft) {
			yield(RecoveryProgress{}, r.failed(err))
		}
	}
}

// recovery is one run of Recover.
type recovery struct {
	client  *Client
	id      string
	token   string
	events  EventStore // may be nil
	yield   func(RecoveryProgress, error) bool
	changed string // for the texts of errors
}

var errLeft = errors.New("the loop was left")

func (r *recovery) run(ctx context.Context) error {
	if r.client.Poll <= 0 {
		return errors.New("the Client's Poll is not positive: set how often to look at the queue")
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
		if err := r.report(RecoveryProgress{Step: RecoveryMisses, Misses: lines}, q); err != nil {
			return err
		}
	}
	if !q.isHeldUp() {
		if err := r.report(RecoveryProgress{Step: RecoveryNotNeeded}, q); err != nil {
			return err
		}
	}
	if q.isHeldUp() || len(owed) > 0 {
		if err := r.prove(ctx, q); err != nil {
			return err
		}
	}
	if !q.isHeldUp() {
		return r.settle(ctx, q)
	}
	since, err := r.silentSince(ctx)
	if err != nil {
		return err
	}
	q, failed := r.release(ctx, q)
	if errors.Is(failed, errLeft) || ctx.Err() != nil {
		return failed
	}
	q.silentSince = since
	err = r.settle(ctx, q) // events that are parked here do not depend on Asaas's queue
	if failed == nil || errors.Is(err, errLeft) {
		return err
	}
	return failed
}

// queue is a webhook's queue as Asaas reports it.
type queue struct {
	webhook     *Webhook
	interrupted bool
	penalized   int
	silentSince time.Time // before it was released
}

func (q queue) isHeldUp() bool { return q.interrupted || q.penalized > 0 }

// look asks Asaas for the queue. A disabled webhook is an error.
func (r *recovery) look(ctx context.Context) (queue, error) {
	w, err := r.webhook(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return queue{}, fmt.Errorf("%s, look again: %w", ended(ctx), context.Cause(ctx))
	case err != nil:
		return queue{}, err
	case w.Interrupted.IsZero() || w.PenalizedRequestsCount.IsZero(): // a missing field does not mean that all is well
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

// prove delivers a canary to the webhook's own URL, and tries the handlers with the oldest event
// that failed, if Try says so.
func (r *recovery) prove(ctx context.Context, q queue) error {
	if err := checkWay(q.webhook, r.token); err != nil {
		return err
	}
	address := q.webhook.URL.Or("")
	place := shown.Clean(shown.Place(address), r.client.secrets(r.token)...)
	way := NewCanary(address, r.token)
	way.Transport = r.client.Receiver
	_, err := way.DryRun(ctx, nil)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the way to %s is not proved, %s: %w", place, ended(ctx), context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("the way to %s is not proved: %w", place, err)
	}
	p := RecoveryProgress{Step: RecoveryProbed}
	if p.Oldest, err = r.oldestParked(ctx); err != nil {
		return err
	}
	if p.Oldest.ID == "" || r.client.Try == nil {
		return r.report(p, q)
	}
	outcome := idem.Unhandled
	if r.client.Try(ctx, p.Oldest) {
		outcome, err = way.DryRun(ctx, p.Oldest.Payload)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the way to %s is proved, and handlers were not tried, %s: %w", place, ended(ctx), context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("the handlers could not be tried: %w", err)
	case outcome == idem.Retrying, outcome == idem.Parked:
		return fmt.Errorf("the handlers fail with %s: the application's log has the error of the dry run", nameOf(p.Oldest))
	}
	p.Tried = outcome == idem.Done
	return r.report(p, q)
}

// checkWay returns an error for mistakes that make real deliveries fail, though a canary would arrive.
func checkWay(w *Webhook, token string) error {
	switch {
	case !isToken(token), strings.ContainsFunc(token, unicode.IsControl):
		return errors.New("the webhook's token is empty, or has a line break or the like: give the one that the application verifies with, Asaas does not show it")
	case w.APIVersion.Or(3) == 2:
		return errors.New("the webhook has apiVersion 2, whose deliveries carry no token: make a new webhook with apiVersion 3")
	case !w.HasAuthToken.Or(true):
		return errors.New("the webhook has no token at Asaas, so its deliveries are refused: set one at Asaas, or through its API")
	}
	return nil
}

// oldestParked returns the oldest event that is parked; the zero event if there is none.
func (r *recovery) oldestParked(ctx context.Context) (oldest idem.StoredEvent, err error) {
	if r.events == nil {
		return oldest, nil
	}
	for e, err := range r.events.List(ctx, idem.Filter{States: []idem.State{idem.StateParked}}) {
		if err != nil {
			return oldest, owedUnknown(err)
		}
		return e, nil
	}
	return oldest, nil
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

func (r *recovery) resume(ctx context.Context, q queue) error {
	if err := r.client.Resume(ctx, r.id); err != nil {
		return r.perhaps(err, "the queue was resumed")
	}
	r.did("the queue was resumed")
	return r.report(RecoveryProgress{Step: RecoveryResumed}, q)
}

func (r *recovery) removeBackoff(ctx context.Context, q queue) error {
	if err := r.client.RemoveBackoff(ctx, r.id); err != nil {
		return r.perhaps(err, "the penalty was removed")
	}
	r.did("the penalty was removed")
	return r.report(RecoveryProgress{Step: RecoveryPenaltyRemoved}, q)
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
	released := time.Now()
	for quiet := 0; quiet < quietLooks; {
		if err := r.client.wait(ctx, r.client.Poll); err != nil {
			return last, fmt.Errorf("%s with %d failures counted, look again: %w", ended(ctx), last.penalized, err)
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
		if err := r.report(RecoveryProgress{Step: RecoveryWatching}, q); err != nil {
			return last, err
		}
		if !relieved && q.penalized > 0 && same >= relieveAfter {
			if err := r.removeBackoff(ctx, q); err != nil {
				return last, err
			}
			relieved, same = true, 0
		} else if relieved && q.penalized > 0 && same >= relieveAfter && same%relieveAfter < r.client.Poll {
			if at := r.delivered(ctx, time.Since(released)); !at.IsZero() {
				return q, r.report(RecoveryProgress{Step: RecoveryDone, Delivered: at}, q)
			}
		}
		last = q
	}
	return last, r.report(RecoveryProgress{Step: RecoveryDone}, last)
}

// delivered returns the time of the application's last event, if that was stored within d; the
// zero time if none was, or if that is not known.
func (r *recovery) delivered(ctx context.Context, d time.Duration) time.Time {
	if r.events == nil {
		return time.Time{}
	}
	if before, err := r.events.SilentSince(ctx, d); err != nil || !before.IsZero() {
		return time.Time{}
	}
	last, err := r.events.SilentSince(ctx, time.Nanosecond) // an inbox in which no event was ever stored is not silent either
	if err != nil {
		return time.Time{}
	}
	return last
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

func (r *recovery) report(p RecoveryProgress, q queue) error {
	p.Webhook, p.PenalizedRequests = q.webhook, q.penalized
	if !r.yield(p, nil) {
		return errLeft
	}
	return nil
}

// did notes a change for the texts of errors.
func (r *recovery) did(what string) {
	if r.changed == "nothing was changed" {
		r.changed = what
		return
	}
	r.changed += ", " + what
}

// perhaps notes a change that may have been made.
func (r *recovery) perhaps(err error, what string) error {
	if e, ok := errors.AsType[*APIError](err); ok && e.Outcome == CallUnknown {
		r.did("it is not known whether " + what)
	}
	return err
}

// failed is the error for a cause, with the changes until then.
func (r *recovery) failed(cause error) error {
	return &recoveryError{
		text: "asaas: Recover(" + shown.Clean(r.id, r.client.secrets("")...) + "): " + r.changed + ": " + strings.TrimPrefix(cause.Error(), "asaas: "),
		err:  cause,
	}
}

// recoveryError names the package once, even if its cause does.
type recoveryError struct {
	text string
	err  error
}

func (e *recoveryError) Error() string { return e.text }

func (e *recoveryError) Unwrap() error { return e.err }

// ended returns in words why ctx has ended.
func ended(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "the time was over"
	}
	return "it was interrupted"
}
