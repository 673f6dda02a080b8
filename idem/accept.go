package idem

import "context"

// Accept runs one verified event without HTTP, for deliveries that arrive
// through a queue or a router of the application's own. Name the event with
// the provider's Identify:
//
//	outcome, err := processor.Accept(ctx, asaas.Identify(body))
//
// A nil error means that the event is stored or was before, and need not come
// again. With an error it must be delivered again: the work was rolled back, or
// ([Unknown]) the answer to COMMIT was lost.
//
// The event is worked on even if ctx is cancelled meanwhile, until Timeout.
func (p *Processor) Accept(ctx context.Context, e Event) (Outcome, error) {
	outcome, err := p.await(ctx, e, nil)
	if outcome.Acknowledged() {
		return outcome, nil
	}
	return outcome, err
}

// result is what a goroutine of its own came to.
type result struct {
	outcome Outcome
	err     error
}

// await is Accept with the reason why an event is kept, too. work is what the
// event was routed to; nil if it was not.
func (p *Processor) await(ctx context.Context, e Event, work Work) (Outcome, error) {
	results := make(chan result, 1)
	go p.deliver(ctx, e, work, func(o Outcome, err error) { results <- result{o, err} })
	r := <-results
	return r.outcome, r.err
}
