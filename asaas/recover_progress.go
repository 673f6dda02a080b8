package asaas

import (
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// RecoveryStep is a step of [Recover].
type RecoveryStep string

const (
	// Nothing is held up at Asaas, and nothing was changed there. The last,
	// unless Recover was given the application's events.
	RecoveryNotNeeded RecoveryStep = "not needed"
	// The webhook does not bring all events that the application has handlers for: see Misses.
	RecoveryMisses RecoveryStep = "misses"
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
	// The parked and retrying events are replayed.
	RecoveryReplayed RecoveryStep = "replayed"
	// The delivered events that the application owes now, in Owed. Events
	// that Asaas deleted before are in no list: see LastArrival. The last.
	RecoveryOwed RecoveryStep = "owed"
)

// RecoveryProgress is a step of [Recover].
type RecoveryProgress struct {
	Step RecoveryStep
	// Webhook is as it was seen last: before the change, until it is watched.
	Webhook *Webhook
	// PenalizedRequests is Asaas's count of the requests that it could not deliver, then.
	PenalizedRequests int
	// Misses is of RecoveryMisses: a line for each event type that has a handler and is
	// not subscribed to, and for the order, where a Processor relies on it. PlanWebhook
	// repairs them.
	Misses []string
	// Replayed is of RecoveryReplayed.
	Replayed idem.Replayed
	// Owed is of RecoveryOwed.
	Owed []Owed
	// LastArrival is of RecoveryOwed: when the application got its last event before
	// a queue that was held up was released, and so the time since when nothing was
	// delivered, at least. Asaas deletes events that have waited for 14 days. Zero if nothing
	// was held up, or no event is stored.
	LastArrival time.Time
}

// String is a line for people: "the penalty is removed".
func (p RecoveryProgress) String() string {
	switch p.Step {
	case RecoveryNotNeeded:
		return "nothing is held up at Asaas, and nothing was changed there"
	case RecoveryMisses:
		return strings.Join(p.Misses, "; ") + ": asaas-queue plan shows it, and apply repairs it"
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
		return owedText(p.Owed) + p.lostText()
	}
	return string(p.Step)
}

// lostText is about events that may never come.
func (p RecoveryProgress) lostText() string {
	silence := time.Since(p.LastArrival)
	if p.LastArrival.IsZero() || silence < retention {
		return ""
	}
	return fmt.Sprintf("; nothing was delivered for %d days, since %s at least, and Asaas deletes events after 14: run Reconcile from then, it names those that never come",
		int(silence.Hours()/24), p.LastArrival.UTC().Format(time.DateTime+" MST"))
}

func owedText(owed []Owed) string {
	if len(owed) == 0 {
		return "nothing is owed of what was delivered: no event is parked, and none waits for another delivery"
	}
	var parts []string
	for _, o := range owed {
		parts = append(parts, o.String())
	}
	return "still owed: " + strings.Join(parts, "; ") + ": see their errors, fix those, and replay them"
}

func replayed(n idem.Replayed) string {
	said := fmt.Sprintf("replayed: %d done, %d failed again, %d without handler", n.Done, n.Failed, n.Unhandled)
	if len(n.Overtaken) > 0 {
		said += "; " + n.Overtaken[0].String()
	}
	if more := len(n.Overtaken) - 1; more > 0 {
		said += fmt.Sprintf("; %d more ran behind later ones", more)
	}
	return said
}
