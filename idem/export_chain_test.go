package idem

import "context"

// WorkOff is Run with one worker that has taken up to n events, the first of
// each queue, before it begins: each follows the one before it, if that allows.
func WorkOff(ctx context.Context, i *Inbox, n int) error {
	working, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	r := &running{
		inbox:    i,
		ctx:      working,
		stopping: ctx.Done(),
		claims:   make(chan *claim, n),
		settled:  make(chan struct{}, 1),
	}
	claims, err := i.claimHeads(ctx, i.source.Name()+"/", n, nil)
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
