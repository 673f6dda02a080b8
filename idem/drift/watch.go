package drift

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/internal/shape"
)

// Watch compares bodies with the Go types that they are decoded into, and
// keeps its findings in memory: 1,000 findings at most, see [More]. Its zero
// value watches.
//
// The exported fields are settings: change them before the first event.
type Watch struct {
	// Observe, when set, is called once for each new finding. It is
	// called from many goroutines and holds up the answer. A panic in it is logged,
	// and has no other effect.
	Observe func(Finding)

	// Every is the number of bodies of an event type to one that is
	// compared, after the first 16. Default: 256. Set it to 1 to compare all.
	Every int

	seen sync.Map // event type: *atomic.Uint64, bodies of that type

	mu       sync.Mutex
	findings map[finding]*Finding
	more     Finding
}

// Look compares a body with its Go type, if the body is in the sample. event is a pointer to the struct
// that the body decodes into, and only its type matters; nil for an event type that is not known. failure
// is the error of decoding the body, or of [Check]; nil if there is none, or if the body was not decoded. A
// body with a failure is always compared.
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

// Findings returns the findings by event type, path and kind, and [More] last.
func (w *Watch) Findings() []Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Finding
	for _, f := range w.findings {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.EventType, b.EventType), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind))
	})
	if w.more.Count > 0 {
		more := w.more
		more.Kind = More
		out = append(out, more)
	}
	return out
}

// Note keeps a finding that no comparison of bodies makes, such as
// [HeaderDiffers], and reports whether it is new. eventType and path are kept as
// they are: pass a text of a stranger's choice through [Name].
func (w *Watch) Note(eventType, path string, kind Kind) (isNew bool) {
	news, isNew := w.keep(finding{eventType, path, kind}, time.Now())
	if isNew && w.Observe != nil {
		w.tell(news)
	}
	return isNew
}

// Finding is one difference between bodies and the spec. Differences of one event type, path and
// kind are one finding.
type Finding struct {
	EventType string    // PAYMENT_RECEIVED; "" if the body names none
	Path      string    // payment.split[].taxes; "" for the body itself
	Kind      Kind      // the difference
	First     time.Time // when it was first seen
	Last      time.Time // when it was last seen
	Count     int64     // how often it was seen, in the bodies that were looked at
}

// Kind names a difference.
type Kind string

const (
	UnknownEvent    Kind = "unknown_event"    // the event type is not in the spec
	UnknownField    Kind = "unknown_field"    // the object has no such field in the spec; its content is not looked at
	UnknownValue    Kind = "unknown_value"    // the enum has no such value in the spec
	UnexpectedNull  Kind = "unexpected_null"  // null, where the spec has a value always
	ChangedType     Kind = "changed_type"     // another type of JSON than in the spec, or a number that does not fit
	MissingRequired Kind = "missing_required" // nothing, where the spec has a value always
	Unreadable      Kind = "unreadable"       // no JSON object that names an event
	HeaderDiffers   Kind = "header_differs"   // a header that is not signed differs from the signed body; Path is its name

	// More is the kind of the last finding if there were more findings than a Watch keeps. Its Count
	// is the number of times that the others were seen.
	More Kind = "more"
)

// Name returns a name that a provider sent, or "*" if it might hold somebody's data: an id, a
// document or an address that is used as the key of an object.
func Name(sent string) string { return shape.Name(sent) }

// maxFindings is the number of distinct findings that are kept: a provider may use values as names.
const maxFindings = 1000

type finding struct {
	eventType, path string
	kind            Kind
}

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

// tell calls the application's observer. A panic of the observer must not fail the event.
func (w *Watch) tell(f Finding) {
	err := pgtx.Protect(func() error { w.Observe(f); return nil })
	if err == nil {
		return
	}
	_ = pgtx.Protect(func() error { // a panic of the logger cannot be reported
		slog.Error("drift Observe function failed", slog.String("error", err.Error()))
		return nil
	})
}

// fullyWatched is the number of bodies of each event type that are all compared.
const fullyWatched = 16

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

func (w *Watch) compare(eventType string, s *shape.Shape, failure error, body []byte) {
	v, err := read(body)
	if err != nil {
		w.Note(eventType, "", Unreadable)
		return
	}
	seen := make(map[finding]bool) // a list has the same path many times
	found := func(path, kind string) {
		if f := (finding{eventType, path, Kind(kind)}); !seen[f] {
			seen[f] = true
			w.Note(eventType, path, Kind(kind))
		}
	}
	s.Compare("", v, found)
	if lack, ok := errors.AsType[*Incomplete](failure); ok {
		found(lack.Path, string(lack.Kind))
	}
}

var shapes sync.Map // of event structs, reflect.Type: *shape.Shape

// eventShape returns the JSON that fits an event struct.
func eventShape(t reflect.Type) *shape.Shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape.Shape)
	}
	kept, _ := shapes.LoadOrStore(t, shapeOf(t, make(map[reflect.Type]*shape.Shape)))
	return kept.(*shape.Shape)
}

// shapeOf adds the shapes that it makes to made, for types that contain themselves.
func shapeOf(t reflect.Type, made map[reflect.Type]*shape.Shape) *shape.Shape {
	if s := made[t]; s != nil {
		return s
	}
	s := new(shape.Shape)
	made[t] = s
	// The event type has a finding of its own.
	if t.Implements(reflect.TypeFor[interface{ Known() bool }]()) && t.Kind() == reflect.String && t.Name() != "EventType" {
		s.Known = func(value string) bool {
			return reflect.ValueOf(value).Convert(t).Interface().(interface{ Known() bool }).Known()
		}
	}
	switch pointer := reflect.PointerTo(t); {
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		s.Kind, s.Fits = writtenAs(t), decodesInto(t)
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		s.Kind, s.Fits = "string", decodesInto(t)
	default:
		describe(s, t, made)
	}
	return s
}

// describe sets s to the JSON that encoding/json decodes into a type without a method for it.
func describe(s *shape.Shape, t reflect.Type, made map[reflect.Type]*shape.Shape) {
	switch t.Kind() {
	case reflect.String:
		s.Kind = "string"
	case reflect.Bool:
		s.Kind = "bool"
	case reflect.Struct:
		s.Kind, s.Fields = "object", make(map[string]shape.Field)
		addFields(s.Fields, t, made)
	case reflect.Slice, reflect.Array:
		s.Kind, s.Elem = "array", shapeOf(unwrapped(t.Elem()), made)
	case reflect.Map:
		s.Kind = "object" // free of form: its keys are somebody's data as much as its values
	case reflect.Interface:
	default:
		s.Kind, s.Fits = "number", decodesInto(t)
	}
}

func addFields(fields map[string]shape.Field, t reflect.Type, made map[reflect.Type]*shape.Shape) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			addFields(fields, f.Type, made)
		case f.IsExported() && name != "-":
			if name == "" {
				name = f.Name
			}
			fields[name] = shape.Field{Shape: shapeOf(unwrapped(f.Type), made), Required: !strings.Contains(options, "omit")}
		}
	}
}

// unwrapped returns the type that a pointer or a value.Optional may hold.
func unwrapped(t reflect.Type) reflect.Type {
	switch get, ok := t.MethodByName("Get"); {
	case t.Kind() == reflect.Pointer:
		return unwrapped(t.Elem())
	case ok && t.Implements(reflect.TypeFor[interface{ IsNull() bool }]()) && get.Type.NumOut() == 2:
		return unwrapped(get.Type.Out(0))
	}
	return t
}

// writtenAs returns the kind of JSON that the zero value of a type is written as. Nothing else
// shows which kind a type with its own UnmarshalJSON decodes.
func writtenAs(t reflect.Type) string {
	text, err := json.Marshal(reflect.Zero(t).Interface())
	var v any
	if err != nil || json.Unmarshal(text, &v) != nil {
		return ""
	}
	return shape.KindOf(v)
}

// decodesInto returns a function that reports whether a value can be decoded into a type.
func decodesInto(t reflect.Type) func(v any) bool {
	return func(v any) bool {
		text, err := json.Marshal(v)
		return err == nil && json.Unmarshal(text, reflect.New(t).Interface()) == nil
	}
}
