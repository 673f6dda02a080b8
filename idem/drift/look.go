package drift

import (
	"encoding/json"
	"errors"
	"reflect"
	"sync/atomic"
)

// fullyWatched is the number of bodies of each event type that are all compared.
const fullyWatched = 16

// Look looks at a body, if it is its turn. event is a pointer to the struct
// that it decodes into, and only its type matters; nil for an event type that
// is not known. failure is the error of decoding it, or of [Check], and
// makes it its turn; nil if there is none, or it was not decoded.
func (w *Watch) Look(eventType string, event any, failure error, body []byte) {
	switch {
	case eventType == "":
		w.Note("", "", Unreadable)
	case event == nil:
		w.Note(Name(eventType), "", UnknownEvent)
	case w.turn(eventType) || failure != nil:
		t := reflect.TypeOf(event).Elem()
		if failure == nil {
			failure = lackAs(t, body)
		}
		w.compare(eventType, eventShape(t), failure, body)
	}
}

// lackAs returns the error of the Check of an event of type t for a body that decodes.
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
		w.Note(eventType, "", Unreadable)
		return
	}
	seen := make(map[finding]bool) // a list has the same path many times
	found := func(path string, kind Kind) {
		if f := (finding{eventType, path, kind}); !seen[f] {
			seen[f] = true
			w.Note(eventType, path, kind)
		}
	}
	walker{found}.value("", s, v)
	if lack, ok := errors.AsType[*Incomplete](failure); ok {
		found(lack.Path, lack.Kind)
	}
}
