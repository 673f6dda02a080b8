package asaas

import "context"

func (r *recovery) resume(ctx context.Context, q queue) error {
	if err := r.client.Resume(ctx, r.id); err != nil {
		return r.perhaps(err, "the queue was resumed")
	}
	r.changed = "the queue was resumed"
	return r.tell(RecoveryProgress{Step: RecoveryResumed}, q)
}

func (r *recovery) removeBackoff(ctx context.Context, q queue) error {
	if err := r.client.RemoveBackoff(ctx, r.id); err != nil {
		return r.perhaps(err, "the penalty was removed")
	}
	r.did("the penalty was removed")
	return r.tell(RecoveryProgress{Step: RecoveryPenaltyRemoved}, q)
}
