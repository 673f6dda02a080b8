package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
)

// DryRunHeader, in a genuine delivery, asks for [Processor.DryRun] instead of
// the work: whether the handlers of a running application are sound, tried
// through its network, verification and database. Nothing is stored, so the
// answer is 503 in any case: no provider takes it for an acknowledgement. Its
// body has the outcome: {"received":false,"dry_run":"handled"}.
const DryRunHeader = "Idem-Dry-Run"

// DryRun runs the handler of an event in a transaction that is always rolled
// back, with the record of the event, and returns the outcome that a delivery
// would have. Nothing is stored, also of an event that is stored already; what
// the handler does outside of its transaction does happen, unless it asks
// [IsDryRun]. Functions for after the commit do not run.
func (p *Processor) DryRun(ctx context.Context, e Event) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	e = p.normalize(e)
	results := make(chan result, 3) // the first one counts
	go func() {
		defer func() { results <- result{Retrying, errInterrupted} }()
		outcome, err := p.dryRun(ctx, e, func() { results <- result{Retrying, errHung} })
		results <- result{outcome, err}
	}()
	r := <-results
	if r.err != nil {
		r.err = fmt.Errorf("idem: dry run of %s %s: %w", e.Type, e.ID, r.err)
	}
	return r.outcome, r.err
}

func (p *Processor) dryRun(ctx context.Context, e Event, hung func()) (Outcome, error) {
	work, err := p.source.Route(e)
	switch {
	case errors.Is(err, ErrIgnored):
		return Ignored, nil
	case err != nil:
		return Parked, err
	case work == nil:
		return Unhandled, nil
	}
	t, err := p.begin(ctx, 0, func(t *transaction) error { return t.markDelivered(e, p.KeepPayloads) })
	if err != nil {
		return Retrying, err
	}
	defer t.release()
	ctx, scope := withScope(ctx, e)
	scope.dry = true
	if err := t.work(ctx, work, hung); err != nil {
		return Retrying, err
	}
	if err := scope.flush(ctx, t.tx); err != nil {
		return Retrying, err
	}
	if _, err := t.tx.Exec(ctx, "set constraints all immediate"); err != nil { // as COMMIT would check them
		return Retrying, err
	}
	return Done, nil
}

// DryReplay tells what [Processor.Replay] would do, by a [Processor.DryRun] of
// each event, for itself: one that needs what another writes fails.
func (p *Processor) DryReplay(ctx context.Context, f Filter) (Replayed, error) {
	return p.each(ctx, f, func(ctx context.Context, e Event, total *Replayed) error {
		switch outcome, _ := p.DryRun(ctx, e); outcome {
		case Done:
			total.Done++
		case Unhandled, Ignored:
			total.Unhandled++
		default:
			total.Failed++
		}
		return ctx.Err()
	})
}

// IsDryRun tells a handler that its transaction will be rolled back, so that it
// can leave out what is not in there: calls, messages, files.
func IsDryRun(ctx context.Context) bool {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	return ok && s.dry
}

// receiveDry is a delivery with DryRunHeader.
func (p *Processor) receiveDry(w http.ResponseWriter, r *http.Request, e Event) {
	outcome, err := p.DryRun(r.Context(), e)
	if err != nil && p.Logger != nil {
		p.Logger.LogAttrs(r.Context(), slog.LevelError, "webhook dry run failed", slog.String("error", err.Error()))
	}
	respond(w, http.StatusServiceUnavailable, fmt.Sprintf(`{"received":false,"dry_run":%q}`, string(outcome)))
}
