package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
)

// Readmitted is the result of [Readmit].
type Readmitted struct {
	Accepted int   // verified now, and stored or processed
	Left     int   // set aside still
	Why      error // why the first of those is; nil if none is
}

// Readmit verifies messages again that [To] has set aside, and passes those that are genuine to
// the receiver: once the consumers have the right secret, the message's format or source. A message
// that is accepted is discarded where it was set aside. The others stay. It may be called
// again, and while consumers run; an event that came in the meantime is a duplicate.
//
// f narrows the messages that were set aside: its Types and States are always theirs. The zero value
// means all of them. Those that somebody has seen are named by [idem.Common.Choose].
//
// An error means that a secret is missing or shorter than 32 characters, that Postgres is
// unavailable, or that a Processor's handler has failed: the message stays set aside.
func Readmit(ctx context.Context, receiver idem.Receiver, f idem.Filter, secrets ...string) (r Readmitted, err error) {
	if err := checkSecrets("Readmit", secrets...); err != nil {
		return r, err
	}
	verify := newVerifier(receiver, secrets)
	common := idem.CommonOf(receiver)
	f.Types, f.States = []string{idem.SetAsideType}, []idem.State{idem.StateParked}
	aside, err := common.Choose(ctx, f)
	if err != nil {
		return r, fmt.Errorf("relay: readmitting messages: %w", err)
	}
	var failed error
	for s, err := range common.List(ctx, aside) {
		if err != nil {
			return r, fmt.Errorf("relay: readmitting messages: %w", err)
		}
		m, err := verify(broker.Message{Body: s.Payload})
		if err != nil {
			if r.Left++; r.Why == nil {
				r.Why = err
			}
			continue
		}
		if err := m.pass(ctx, receiver); err != nil {
			r.Left++
			failed = errors.Join(failed, err)
			continue
		}
		only := idem.Filter{Scopes: []string{s.Scope}, IDs: []string{s.ID}, States: []idem.State{idem.StateParked}}
		if _, err := common.Discard(ctx, only, "verified again, and accepted"); err != nil {
			return r, fmt.Errorf("relay: readmitting messages: an event was accepted, and its message is set aside still: run it again: %w", err)
		}
		r.Accepted++
	}
	if failed != nil {
		return r, fmt.Errorf("relay: readmitting messages: %w", failed)
	}
	return r, nil
}
