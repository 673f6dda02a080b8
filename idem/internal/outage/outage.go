// Package outage recognizes outages of an outbox's broker: of the whole broker, and of single types of messages while
// it takes others.
//
// A faulty message and an unavailable broker give the same error. Other messages tell them apart: in an outage several
// different messages fail with no success between.
package outage

import (
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// Several is the number of different events that must fail in a row before there is an outage.
	Several = 3
	// maxIDs limits the events of a row that are counted one by one.
	maxIDs = 1000
	// maxTypes limits the types that have an entry of their own. All others share one.
	maxTypes = 1000
	// forget is the time without a failure after which an outage is over: its events are discarded, say.
	forget = 2 * time.Hour
)

const (
	minWait = 2 * time.Second
	maxWait = 30 * time.Second
	// hangShare bounds the time that events of a type in an outage take of a worker, if each of them hangs: one
	// part in five.
	hangShare = 4
	// Pace is the time between two events of types in an outage that workers look at, to put them off again.
	Pace = 20 * time.Millisecond
)

const otherTypes = "other types"

// Outage holds the failures of a broker. A nil Outage has none.
type Outage struct {
	mu    sync.Mutex
	all   row
	types map[string]*kind
	turn  time.Time // when the last event that was put off is looked at again
}

// New returns an Outage that knows nothing yet.
func New() *Outage { return &Outage{types: make(map[string]*kind)} }

// row is the failures in a row, with no success between.
type row struct {
	first, last time.Time // zero if there are none
	err         error     // the last one
	ids         map[string]bool
}

func (r *row) add(now time.Time, f Failure) {
	if r.ids == nil || !r.lasts(now) {
		*r = row{first: now, ids: make(map[string]bool)}
	}
	if r.last, r.err = now, f.Err; len(r.ids) < maxIDs {
		r.ids[f.ID] = true
	}
}

// lasts reports whether an event has failed, and none has succeeded since.
func (r *row) lasts(now time.Time) bool { return len(r.ids) > 0 && now.Sub(r.last) < forget }

func (r *row) isOutage(now time.Time) bool { return r.lasts(now) && len(r.ids) >= Several }

// kind is a type of events.
type kind struct {
	row
	done time.Time     // when one last succeeded; zero if none has
	took time.Duration // of the last failure
	next time.Time     // in an outage: when another one is tried
}

// pause returns the time until another event is tried.
func (k *kind) pause(now time.Time) time.Duration {
	return max(minWait, min(now.Sub(k.first)/10, maxWait), hangShare*k.took)
}

// kind returns the entry of a type. The caller holds the lock.
func (o *Outage) kind(eventType string) *kind {
	if o.types[eventType] == nil && len(o.types) >= maxTypes {
		eventType = otherTypes
	}
	if o.types[eventType] == nil {
		o.types[eventType] = new(kind)
	}
	return o.types[eventType]
}

// Done notes that the broker has taken an event.
func (o *Outage) Done(eventType string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = row{}
	*o.kind(eventType) = kind{done: time.Now()}
}

// Failure is an event that the broker has not taken.
type Failure struct {
	Type, ID string
	Before   time.Time     // when the event failed before, by this process's clock; zero if it has not
	Took     time.Duration // the time until it failed
	Answered bool          // the broker is there: it has said what is wrong with this event
	Err      error
}

// Failed notes a failure. own is set if the event itself is to blame: the broker says so, or another event of its type
// has gone through since the event's last failure. Otherwise try the event again after wait.
func (o *Outage) Failed(f Failure) (own bool, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, k := time.Now(), o.kind(f.Type)
	if own = !f.Answered && !f.Before.IsZero() && k.done.After(f.Before); own {
		return own, 0
	}
	// A type that is known to fail says nothing about others.
	if !f.Answered && (!k.isOutage(now) || o.all.isOutage(now)) {
		o.all.add(now, f)
	}
	k.add(now, f)
	k.took = f.Took
	wait = k.pause(now)
	k.next = now.Add(wait)
	return f.Answered, wait
}

// Hold returns how long an event must wait because its type is in an outage; 0 if it may be tried now. In an outage one
// event of the type may be tried after each pause.
//
// Workers look at the waiting events one after the other, so that many of them take no more of the workers' time than
// few. No event waits longer than the outage has lasted.
func (o *Outage) Hold(eventType string) time.Duration {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now, k := time.Now(), o.kind(eventType)
	if !k.isOutage(now) || o.all.isOutage(now) {
		return 0
	}
	if !now.Before(k.next) {
		k.next = now.Add(k.pause(now))
		return 0
	}
	return min(o.putOff(now, 1), k.most(now))
}

// most returns the longest time for which an event is put off.
func (k *kind) most(now time.Time) time.Duration { return max(minWait, now.Sub(k.first)) }

// putOff gives n events their turns, and returns the time until the last one's.
func (o *Outage) putOff(now time.Time, n int) time.Duration {
	if soon := now.Add(minWait); o.turn.Before(soon) {
		o.turn = soon
	}
	o.turn = o.turn.Add(time.Duration(n) * Pace)
	return o.turn.Sub(now)
}

// Holding says how events of types in an outage are put off, many at once: those of each type for most of its place
// among Types at most, the first of all for the time First and Pace.
type Holding struct {
	Types []string
	Most  []time.Duration
	First time.Duration
}

// HoldMany returns how events are put off; without Types if none is. Call Held with their number.
func (o *Outage) HoldMany() (h Holding) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if o.all.isOutage(now) {
		return h
	}
	for name, k := range o.types {
		if k.isOutage(now) {
			h.Types, h.Most = append(h.Types, name), append(h.Most, k.most(now))
		}
	}
	h.First = o.putOff(now, 0)
	return h
}

// Held notes that n events were put off.
func (o *Outage) Held(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.putOff(time.Now(), n)
}

// IsWhole reports whether nothing goes through: several different events have failed, and none has succeeded since.
func (o *Outage) IsWhole() bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.isOutage(time.Now())
}

// Begun returns the time of the first failure since an event has gone through, and the last error; a nil error if there
// is none.
func (o *Outage) Begun() (since time.Time, err error) {
	if o == nil {
		return time.Time{}, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.all.lasts(time.Now()) {
		return time.Time{}, nil
	}
	return o.all.first, o.all.err
}

// Type is a type of events that the broker does not take.
type Type struct {
	Name   string
	Since  time.Time
	Err    error // the last one
	Events int   // that have failed in a row, 1000 at most
}

// Types returns the types of which several different events have failed, and none has succeeded since, the oldest
// outage first.
func (o *Outage) Types() (failing []Type) {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(o.types)) {
		if k := o.types[name]; k.isOutage(now) {
			failing = append(failing, Type{name, k.first, k.err, len(k.ids)})
		}
	}
	slices.SortStableFunc(failing, func(a, b Type) int { return a.Since.Compare(b.Since) })
	return failing
}
