package idem

import "context"

// ClaimHeads takes up to n events as workers do, and returns their queues.
func ClaimHeads(ctx context.Context, i *Inbox, after string, n int) (queues []string, err error) {
	claims, err := i.claimHeads(ctx, max(after, i.firstQueue()), n, nil)
	for _, c := range claims {
		queues = append(queues, c.queue)
	}
	return queues, err
}
