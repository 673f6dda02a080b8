package asaas

import (
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/idem"
)

// RecoveryStep is what [Recover] has done.
type RecoveryStep string

const (
	// Nothing is held up at Asaas, and nothing was changed there. The last,
	// unless Recover was given the application's events.
	RecoveryNotNeeded RecoveryStep = "not needed"
	// The probe passed.
	RecoveryProbed RecoveryStep = "probed"
	// The penalty is removed: Asaas delivers at once.
	RecoveryPenaltyRemoved RecoveryStep = "penalty removed"
	// The queue, which was stopped, is started again.
	RecoveryResumed RecoveryStep = "resumed"
	// Asaas was asked for its count of failures, which has not risen.
	RecoveryWatching RecoveryStep = "watching"
	// Asaas counts no failures any more. The last, unless Recover was given the
	// application's events.
	RecoveryDone RecoveryStep = "done"
	// What was parked or retrying is replayed.
	RecoveryReplayed RecoveryStep = "replayed"
	// What the application owes now, in Owed; nothing, if all is well. The last.
	RecoveryOwed RecoveryStep = "owed"
)

// RecoveryProgress is a step of [Recover].
type RecoveryProgress struct {
	Step RecoveryStep
	// Webhook is as it was seen last: before the change, until it is watched.
	Webhook *Webhook
	// PenalizedRequests is Asaas's count of what it could not deliver, then.
	PenalizedRequests int
	// Replayed is of RecoveryReplayed.
	Replayed idem.Replayed
	// Owed is of RecoveryOwed.
	Owed []Owed
}

// String is a line for people: "the penalty is removed".
func (p RecoveryProgress) String() string {
	switch p.Step {
	case RecoveryNotNeeded:
		return "nothing is held up at Asaas, and nothing was changed there"
	case RecoveryProbed:
		return "the probe passed"
	case RecoveryPenaltyRemoved:
		return "the penalty is removed"
	case RecoveryResumed:
		return "the queue is resumed"
	case RecoveryWatching:
		return fmt.Sprintf("watching: Asaas counts %d failures", p.PenalizedRequests)
	case RecoveryDone:
		return "recovered: Asaas counts no failures any more"
	case RecoveryReplayed:
		return replayed(p.Replayed)
	case RecoveryOwed:
		return owedText(p.Owed)
	}
	return string(p.Step)
}

func owedText(owed []Owed) string {
	if len(owed) == 0 {
		return "nothing is owed: no event is parked, and none waits for another delivery"
	}
	var parts []string
	for _, o := range owed {
		parts = append(parts, o.String())
	}
	return "still owed: " + strings.Join(parts, "; ") + ": see their errors, fix those, and replay them"
}
