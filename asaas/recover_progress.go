package asaas

import "fmt"

// RecoveryStep is what [Recover] has done.
type RecoveryStep string

const (
	// Nothing is held up: there was no probe, and nothing was changed. The last.
	RecoveryNotNeeded RecoveryStep = "not needed"
	// The probe passed.
	RecoveryProbed RecoveryStep = "probed"
	// The penalty is removed: Asaas delivers at once.
	RecoveryPenaltyRemoved RecoveryStep = "penalty removed"
	// The queue, which was stopped, is started again.
	RecoveryResumed RecoveryStep = "resumed"
	// Asaas was asked for its count of failures, which has not risen.
	RecoveryWatching RecoveryStep = "watching"
	// There are no failures any more. The last.
	RecoveryDone RecoveryStep = "done"
)

// RecoveryProgress is a step of [Recover].
type RecoveryProgress struct {
	Step RecoveryStep
	// Webhook is as it was seen last: before the change, until it is watched.
	Webhook *Webhook
	// PenalizedRequests is Asaas's count of what it could not deliver, then.
	PenalizedRequests int
}

// String is a line for people: "the penalty is removed".
func (p RecoveryProgress) String() string {
	switch p.Step {
	case RecoveryNotNeeded:
		return "nothing is held up, and nothing was changed"
	case RecoveryProbed:
		return "the probe passed"
	case RecoveryPenaltyRemoved:
		return "the penalty is removed"
	case RecoveryResumed:
		return "the queue is resumed"
	case RecoveryWatching:
		return fmt.Sprintf("watching: Asaas counts %d failures", p.PenalizedRequests)
	case RecoveryDone:
		return "recovered: there are no failures any more"
	}
	return string(p.Step)
}
