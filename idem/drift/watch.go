package drift

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// maxFindings is the number of distinct findings that are kept: a provider may use values as names.
const maxFindings = 1000

// Watch compares bodies with the Go types that they are decoded into, and
// keeps its findings in memory: 1,000 findings at most, see [More]. Its zero
// value watches.
//
// The exported fields are settings: change them before the first event.
type Watch struct {
	// Observe, when set, is told of each finding once, when it is new. It is
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

// Findings returns the findings, in the order of [Compare].
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

// tell calls the observer, which is the application's: an observer of events must
// not decide about them.
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
