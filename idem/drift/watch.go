package drift

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	fullyWatched = 16   // bodies of each event type
	maxFindings  = 1000 // distinct ones: a provider may well use values as names
)

// Watch compares bodies with the Go types that they are decoded into, and
// keeps in memory what it finds: 1,000 findings at most, see [More]. Its zero
// value watches.
//
// The exported fields are settings: change them before the first event.
type Watch struct {
	// Observe, when set, is told of each finding once, when it is new. It is
	// called from many goroutines and holds up the answer. A panic in it is logged,
	// and has no other effect.
	Observe func(Finding)

	// Every is how many bodies of an event type there are to one that is
	// compared, after the first 16. Default: 256. Set it to 1 to compare all.
	Every int

	seen sync.Map // event type: *atomic.Uint64, bodies of that type

	mu       sync.Mutex
	findings map[finding]*Finding
	more     Finding
}

type finding struct {
	eventType, path string
	kind            Kind
}

// Look looks at a body, if it is its turn. event is a pointer to the struct
// that it decodes into, and only its type matters; nil for an event type that
// is not known. failure is why it does not decode, or what [Check] says, and
// makes it its turn; nil if there is none, or nobody decoded it.
func (w *Watch) Look(eventType string, event any, failure error, body []byte) {
	switch {
	case eventType == "":
		w.found("", "", Unreadable)
	case event == nil:
		w.found(Name(eventType), "", UnknownEvent)
	case w.turn(eventType) || failure != nil:
		t := reflect.TypeOf(event).Elem()
		if failure == nil {
			failure = lackAs(t, body)
		}
		w.compare(eventType, eventShape(t), failure, body)
	}
}

// lackAs is what the Check of an event of type t says of a body that decodes.
func lackAs(t reflect.Type, body []byte) error {
	event := reflect.New(t).Interface()
	checked, ok := event.(interface{ Check(body []byte) error })
	if !ok || json.Unmarshal(body, event) != nil {
		return nil
	}
	return checked.Check(body)
}

func (w *Watch) turn(eventType string) bool {
	counter, ok := w.seen.Load(eventType)
	if !ok {
		counter, _ = w.seen.LoadOrStore(eventType, new(atomic.Uint64))
	}
	every := uint64(w.Every)
	if w.Every <= 0 {
		every = 256
	}
	n := counter.(*atomic.Uint64).Add(1)
	return n <= fullyWatched || n%every == 0
}

func (w *Watch) compare(eventType string, s *shape, failure error, body []byte) {
	v, err := read(body)
	if err != nil {
		w.found(eventType, "", Unreadable)
		return
	}
	seen := make(map[finding]bool) // a list has the same path many times
	found := func(path string, kind Kind) {
		if f := (finding{eventType, path, kind}); !seen[f] {
			seen[f] = true
			w.found(eventType, path, kind)
		}
	}
	walker{found}.value("", s, v)
	if lack, ok := errors.AsType[*Incomplete](failure); ok {
		found(lack.Path, lack.Kind)
	}
}

// found keeps a finding, and tells the observer if it is new.
func (w *Watch) found(eventType, path string, kind Kind) { w.Note(eventType, path, kind) }

func (w *Watch) keep(key finding, now time.Time) (news Finding, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.findings[key]
	switch {
	case f != nil:
	case len(w.findings) >= maxFindings:
		f = &w.more
	default:
		if w.findings == nil {
			w.findings = make(map[finding]*Finding)
		}
		f, is = &Finding{EventType: key.eventType, Path: key.path, Kind: key.kind}, true
		w.findings[key] = f
	}
	if f.Count == 0 {
		f.First = now
	}
	f.Last = now
	f.Count++
	return *f, is
}

// Findings returns what was found, in the order of [Compare].
func (w *Watch) Findings() []Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Finding
	for f := range maps.Values(w.findings) {
		out = append(out, *f)
	}
	slices.SortFunc(out, Compare)
	if w.more.Count > 0 {
		more := w.more
		more.Kind = More
		out = append(out, more)
	}
	return out
}
