package asaas

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

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
