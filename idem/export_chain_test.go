package idem

import "context"

// WorkOff is Run with one worker that has taken up to n events, the first of
// each queue, before it begins: each follows the one before it, if that allows.
func WorkOff(ctx context.Context, i *Inbox, n int) error {
	r, cancel := i.running(ctx, n)
	defer cancel(nil)
	claims, err := i.claimHeads(ctx, r.last, n, nil)
	if err != nil {
		return err
	}
	for _, c := range claims {
		if !c.until.IsZero() {
			r.begin(c)
		}
	}
	go r.work()
	for r.open.Load() > 0 && ctx.Err() == nil {
		select {
		case <-r.settled:
		case <-ctx.Done():
		}
	}
	return r.stop(cancel)
}
