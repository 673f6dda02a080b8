package asaas

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas/internal/shown"
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
	// The canary arrived, and the handlers passed if they were tried: see Tried.
	RecoveryProbed RecoveryStep = "probed"
	// The penalty is removed: Asaas delivers at once.
	RecoveryPenaltyRemoved RecoveryStep = "penalty removed"
	// The queue, which was stopped, is started again.
	RecoveryResumed RecoveryStep = "resumed"
	// Asaas was asked for its count of failures, which has not risen.
	RecoveryWatching RecoveryStep = "watching"
	// Asaas counts no failures any more, or its count stays the same and events arrive: see
	// Delivered. The last, unless Recover was given the application's events.
	RecoveryDone RecoveryStep = "done"
	// The parked events are replayed.
	RecoveryReplayed RecoveryStep = "replayed"
	// The delivered events that the application owes now, in Owed. Events
	// that Asaas deleted before are in no list: see SilentSince. The last.
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
	// not subscribed to. Package webhook repairs them.
	Misses []string
	// Oldest is of RecoveryProbed: the oldest event that is parked; the zero event if there is none.
	Oldest idem.StoredEvent
	// Tried is of RecoveryProbed: the application's handlers passed with Oldest.
	Tried bool
	// Delivered is of RecoveryDone: the time of the application's last event, of any webhook, if that
	// confirms the recovery and Asaas still counts failures; otherwise zero.
	Delivered time.Time
	// Replayed is of RecoveryReplayed.
	Replayed idem.Replayed
	// Owed is of RecoveryOwed.
	Owed []Owed
	// SilentSince is of RecoveryOwed: the time of the application's last event before the
	// queue was released, if that is longer ago than 14 days, after which Asaas deletes
	// waiting events. Otherwise, and if no event is stored, it is zero.
	SilentSince time.Time
}

// String is a line for people: "the penalty is removed".
func (p RecoveryProgress) String() string {
	switch p.Step {
	case RecoveryNotNeeded:
		return "nothing is held up at Asaas, and nothing was changed there"
	case RecoveryMisses:
		return strings.Join(p.Misses, "; ") + ": asaas-queue plan shows it, and apply repairs it"
	case RecoveryProbed:
		return p.probedText()
	case RecoveryPenaltyRemoved:
		return "the penalty is removed"
	case RecoveryResumed:
		return "the queue is resumed"
	case RecoveryWatching:
		return fmt.Sprintf("watching: Asaas counts %d failures", p.PenalizedRequests)
	case RecoveryDone:
		if !p.Delivered.IsZero() {
			return fmt.Sprintf("recovered: events arrive at the inbox, from this webhook or another one, the last at %s; Asaas still counts %d failures, which may be its history",
				p.Delivered.UTC().Format(time.DateTime+" MST"), p.PenalizedRequests)
		}
		return "recovered: Asaas counts no failures any more"
	case RecoveryReplayed:
		return replayed(p.Replayed)
	case RecoveryOwed:
		return owedText(p.Owed) + p.lostText()
	}
	return string(p.Step)
}

func (p RecoveryProgress) probedText() string {
	switch {
	case p.Tried:
		return "the way is proved, and the handlers passed with the oldest event that failed, " + nameOf(p.Oldest)
	case p.Oldest.ID != "":
		return "the way is proved, handlers were not tried: the oldest event that failed is " + nameOf(p.Oldest)
	}
	return "the way is proved, handlers were not tried"
}

// nameOf names an event for people, without control characters.
func nameOf(e idem.StoredEvent) string {
	name := fmt.Sprintf("%s %s", e.Type, e.ID)
	if e.Key != "" {
		name += " of " + e.Key
	}
	if e.Scope != "" {
		name += " of the account " + e.Scope
	}
	return shown.Clean(name)
}

// lostText names the time since which events may have been deleted; "" if none may.
func (p RecoveryProgress) lostText() string {
	if p.SilentSince.IsZero() {
		return ""
	}
	return fmt.Sprintf("; nothing was delivered for %d days, since %s at least, and Asaas deletes events after 14: run a reconcile from then, it books what they would have told",
		int(time.Since(p.SilentSince).Hours()/24), p.SilentSince.UTC().Format(time.DateTime+" MST"))
}

func owedText(owed []Owed) string {
	if len(owed) == 0 {
		return shown.NothingOwed
	}
	var parts []string
	for _, o := range owed {
		parts = append(parts, o.String())
	}
	next := "fix those, and replay them"
	if slices.ContainsFunc(owed, func(o Owed) bool { return o.Failing > 0 }) {
		next = "fix those, and replay what is parked; workers try the others again, at once after idem requeue -failed"
	}
	return "still owed: " + strings.Join(parts, "; ") + ": see their errors, " + next
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

// EventStore holds an application's events: an [*idem.Inbox].
type EventStore interface {
	List(ctx context.Context, f idem.Filter) iter.Seq2[idem.StoredEvent, error]
	Replay(ctx context.Context, f idem.Filter) (idem.Replayed, error)
	SilentSince(ctx context.Context, d time.Duration) (time.Time, error)
}

var _ EventStore = (*idem.Inbox)(nil)

// Owed are the events of one type that an application has not finished,
// though Asaas has delivered them. An event that it never delivered is in no Owed:
// Reconcile of package charges finds what it would have told.
type Owed struct {
	Type    EventType `json:"type"`
	Parked  int       `json:"parked"`  // acknowledged: nothing happens to them until they are replayed
	Pending int       `json:"pending"` // acknowledged and due for a minute or longer: no workers take them, or not fast enough
	Failing int       `json:"failing"` // acknowledged, and failed: an inbox's workers try them again, and park them in the end
	Waiting int       `json:"waiting"` // acknowledged: they wait for a parked or a failing one of their charge
	Oldest  time.Time `json:"oldest"`  // when the first of them arrived, in UTC
}

// String is "3 PAYMENT_RECEIVED parked, 2 being tried again". It has no control characters,
// for any type that a body names.
func (o Owed) String() string {
	eventType := shown.Clean(string(o.Type))
	var parts []string
	add := func(n int, state string) {
		switch {
		case n > 0 && len(parts) == 0:
			parts = append(parts, fmt.Sprintf("%d %s %s", n, eventType, state))
		case n > 0:
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	add(o.Parked, "parked")
	add(o.Pending, "pending")
	add(o.Failing, "being tried again")
	add(o.Waiting, "waiting for an earlier one")
	if o.Failing > 0 && !o.Oldest.IsZero() {
		parts = append(parts, fmt.Sprintf("the oldest for %d min", int(time.Since(o.Oldest).Minutes())))
	}
	return strings.Join(parts, ", ")
}

// owedAfter is the time for which a pending event may be due: workers take it, or are too few.
const owedAfter = time.Minute

// ListOwed counts, by their type, most of them first, the events that are parked; those that have failed and that an
// inbox's workers try again; those that wait for one of these; and others that are pending and that no workers have
// taken for a minute. To replay those that are parked, after a fix:
//
//	replayed, err := inbox.Replay(ctx, idem.Filter{States: []idem.State{idem.StateParked}})
func ListOwed(ctx context.Context, events EventStore) ([]Owed, error) {
	type entity struct{ scope, key string }
	found := make(map[EventType]Owed)
	standing := make(map[entity]bool) // an earlier event of it is parked, or failing
	for e, err := range events.List(ctx, idem.Filter{States: []idem.State{idem.StateParked, idem.StatePending}}) {
		if err != nil {
			return nil, err
		}
		o, of := found[EventType(e.Type)], entity{e.Scope, e.Key}
		switch {
		case e.State == idem.StateParked:
			o.Parked++
			standing[of] = e.Key != ""
		case e.Attempts > 0 || e.Crashes > 0:
			o.Failing++
			standing[of] = e.Key != ""
		case standing[of]:
			o.Waiting++
		case !e.DueAt.IsZero() && time.Since(e.DueAt) >= owedAfter:
			o.Pending++
		default:
			continue
		}
		o.Type = EventType(e.Type)
		if o.Oldest.IsZero() || e.ReceivedAt.Before(o.Oldest) {
			o.Oldest = e.ReceivedAt.UTC()
		}
		found[o.Type] = o
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Owed) int {
		return cmp.Or(cmp.Compare(b.events(), a.events()), cmp.Compare(a.Type, b.Type))
	}), nil
}

func (o Owed) events() int { return o.Parked + o.Pending + o.Failing + o.Waiting }

// owed is ListOwed of the events that Recover was given.
func (r *recovery) owed(ctx context.Context) ([]Owed, error) {
	if r.events == nil {
		return nil, nil
	}
	owed, err := ListOwed(ctx, r.events)
	if err != nil {
		return nil, owedUnknown(err)
	}
	return owed, nil
}

func owedUnknown(err error) error {
	return fmt.Errorf("what the application owes is not known: %w", err)
}

// silentSince returns the time of the application's last event, if Asaas may have deleted
// events since.
func (r *recovery) silentSince(ctx context.Context) (last time.Time, err error) {
	if r.events == nil {
		return last, nil
	}
	if last, err = r.events.SilentSince(ctx, retention); err != nil {
		return last, owedUnknown(err)
	}
	return last, nil
}

// settle replays the owed events, and reports those that are owed then.
func (r *recovery) settle(ctx context.Context, q queue) error {
	owed, err := r.owed(ctx) // anew: Asaas has delivered since
	if err != nil || r.events == nil {
		return err
	}
	if slices.ContainsFunc(owed, func(o Owed) bool { return o.Parked > 0 }) {
		if err := r.replay(ctx, q); err != nil {
			return err
		}
		if owed, err = r.owed(ctx); err != nil {
			return err
		}
	}
	return r.report(RecoveryProgress{Step: RecoveryOwed, Owed: owed, SilentSince: q.silentSince}, q)
}

func (r *recovery) replay(ctx context.Context, q queue) error {
	n, err := r.events.Replay(ctx, idem.Filter{States: []idem.State{idem.StateParked}})
	if n.Done+n.Failed+n.Unhandled == 0 { // workers, or Asaas, were faster
		return err
	}
	if r.did(replayed(n)); err != nil {
		return err
	}
	return r.report(RecoveryProgress{Step: RecoveryReplayed, Replayed: n}, q)
}

// misses returns lines about events that the webhook does not bring to an application that relies on
// it: a type that has a handler and is not subscribed to.
func misses(w *Webhook, events EventStore) (lines []string) {
	subscribed, isReported := w.Events.Get()
	if handler, ok := events.(interface{ Types() []string }); ok && isReported {
		for _, t := range handler.Types() {
			same := func(s EventType) bool { return canonical(s) == canonical(EventType(t)) }
			if !slices.ContainsFunc(subscribed, same) {
				lines = append(lines, fmt.Sprintf(shown.NeverComes, t))
			}
		}
	}
	return lines
}
