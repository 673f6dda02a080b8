package idem

import "context"

// Replay processes events that were stored because no handler existed or because
// they failed, by the provider's time and then by arrival, one after the other. Call it after deploying the
// missing handler or the fix. Each event runs like a delivery, in a transaction
// of its own with the record that it is done, so that it is safe to replay while
// deliveries arrive and from several processes at once. Two stored events of one
// entity are never processed at the same time, and an event with an earlier one of
// its entity that is pending or parked has to wait for that. So has a new event that a
// Processor receives meanwhile: it waits while the earlier one is being processed.
//
// Events that were parked only because they waited for one that is done now follow it,
// in order, whether or not f chooses them, until one fails. They are counted, too.
//
// A failing event does not stop the others; its error is logged and observed, and
// that of its handler is stored. An unhandled event that fails is parked. Replay
// returns an error when ctx ends or Postgres is unavailable, together with the counts until then.
//
// An event runs also if a later one of its entity was done before, where that did not wait
// for it or came earlier: it may be money. Replayed.Overtaken has those events, for a person to
// look at. To find them Replay reads the rows of all events at its end, once, ten million in
// a second or two; see operator.Operator.ScanOfKey for an index.
//
// With StatePending among the filter's states it does the work of an inbox that
// has no workers any more. To have workers do it, see [Inbox.Requeue]; to see
// the effect, [Common.DryReplay].
func (c *Common) Replay(ctx context.Context, f Filter) (Replayed, error) {
	return c.ReplayFunc(ctx, f, func(Replayed, Event, error) {})
}

// ReplayFunc is Replay with a report: it calls ran after each event, with the sum until
// then, and why the event failed, if it did.
func (c *Common) ReplayFunc(ctx context.Context, f Filter, ran func(sum Replayed, e Event, failure error)) (Replayed, error) {
	return c.withOvertaken(ctx, ran, func(ran func(Replayed, Event, error)) (Replayed, error) {
		sum, err := c.runAll(ctx, f, c.replay, ran)
		if err != nil {
			return sum, err
		}
		return c.goThroughLanes(ctx, sum, ran)
	})
}

// goThroughLanes goes on behind the events that a replay has done: see replayHeld.
func (c *Common) goThroughLanes(ctx context.Context, sum Replayed, ran func(Replayed, Event, error)) (Replayed, error) {
	if _, err := c.passParked(ctx); err != nil {
		return sum, err
	}
	return c.replayHeld(ctx, sum, ran)
}
