package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

const (
	releaseEvery = time.Hour       // at most, whichever process it is
	releaseQuiet = 5 * time.Minute // without an event: if some come, nothing is held up for long

	releaser  = "webhook.Watch"           // in the audit trail
	releasing = "release queue"           // also what package console records
	removed   = "the penalty was removed" // its result begins so, unless it failed
)

// released holds what a look found about the release of the queue. The zero value is nothing.
type released struct {
	at      time.Time // of the last one, if no event has come since, by the database's clock; zero for none
	failed  string    // why that one has removed nothing; "" if it has
	command string    // for a person
	err     error     // of this look
}

// relieve removes the penalty of the webhook's queue, if it was held up at the look before, too: see Release. It
// reports whether it is held up.
func (w *Watch) relieve(ctx context.Context, p *Plan, before bool) (held bool) {
	found, held, err := w.findHeld(ctx, p)
	if err == nil && held && before && (found.at.IsZero() || found.failed != "") {
		err = w.removePenalty(ctx, p.Webhook)
	}
	if ctx.Err() == nil {
		found.err = err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release = found
	return held
}

// findHeld reports whether the queue is held up by a penalty alone, and looks for a release that has brought nothing.
func (w *Watch) findHeld(ctx context.Context, p *Plan) (found released, held bool, err error) {
	at := p.Webhook
	if at == nil || !at.Enabled.Or(false) || at.Interrupted.Or(true) || at.PenalizedRequestsCount.Or(0) <= 0 {
		return found, false, nil
	}
	newest, err := w.Release.SilentSince(ctx, releaseQuiet)
	if err != nil || newest.IsZero() || w.refuses() { // the next try would be refused, too
		return found, false, err
	}
	last, ok, err := operator.New(w.Release, releaser).LastAction(ctx, releasing, "queue "+at.ID)
	if err == nil && ok && last.Actor == releaser && !newest.After(last.At) {
		found = released{at: last.At, command: p.asaasQueue(w.account, "recover", p.shown(at.ID))}
		if !strings.HasPrefix(last.Result, removed) {
			found.failed = cmp.Or(last.Result, "its process has died")
		}
	}
	return found, err == nil, err
}

// refuses reports whether this process has refused a delivery since the last genuine one.
func (w *Watch) refuses() bool {
	limits := check.Limits{MaxFailures: 1, Failed: func(string) time.Time { return time.Now() }}
	for _, c := range w.Release.Endpoint.Examine(context.Background(), limits) { // which asks nobody
		if c.Name == "refused" && !c.Healthy {
			return true
		}
	}
	return false
}

func (w *Watch) removePenalty(ctx context.Context, at *asaas.Webhook) error {
	remove := func(ctx context.Context) (string, error) {
		if err := w.client.RemoveBackoff(ctx, at.ID); err != nil {
			return "", err
		}
		counted := fmt.Sprintf(removed+"; Asaas counted %d failed deliveries before it", at.PenalizedRequestsCount.Or(0))
		after, err := w.client.Webhook(ctx, at.ID)
		if err != nil {
			return counted, err
		}
		return fmt.Sprintf("%s, and %d after it", counted, after.PenalizedRequestsCount.Or(0)), nil
	}
	why := fmt.Sprintf("the queue is penalized, and no event has come for %s", releaseQuiet)
	err := operator.New(w.Release, releaser).RecordOnce(ctx, releaseEvery, releasing, "queue "+at.ID, why, remove)
	_, refused := errors.AsType[*asaas.APIError](err)
	if refused || errors.Is(err, operator.ErrDoneLately) { // the next look finds it in the trail
		return nil
	}
	return err
}

// says returns the text that Examine adds; "" for none. more is the time of the last look that found more failed
// deliveries.
func (r released) says(more time.Time) (text string, sound bool) {
	switch {
	case r.err != nil:
		return "the penalty of its queue was not removed, which is tried again: see whether Postgres is well, and this application's log", true
	case r.failed != "":
		return fmt.Sprintf("the penalty of its queue was not removed at %s, which is tried again an hour later: %s", r.at.UTC().Format("15:04 MST"), r.failed), true
	case r.at.IsZero():
		return "", true
	}
	text = fmt.Sprintf("the penalty of its queue was removed at %s, and no new event has come since", r.at.UTC().Format("15:04 MST"))
	if !more.After(r.at) { // the count may never fall, and nothing may wait
		return text, true
	}
	return text + ", though Asaas counts more failed deliveries: see this application's log, and that of the webhook at Asaas", false
}
