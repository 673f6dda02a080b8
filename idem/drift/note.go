package drift

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// Note keeps a finding that no comparison of bodies makes, such as
// [HeaderDiffers], and reports whether it is new. eventType and path are kept as
// they are: pass what a stranger chose through [Name].
func (w *Watch) Note(eventType, path string, kind Kind) (isNew bool) {
	news, isNew := w.keep(finding{eventType, path, kind}, time.Now())
	if isNew && w.Observe != nil {
		w.tell(news)
	}
	return isNew
}

// tell tells the observer, which is the application's: what watches events must
// not decide about them.
func (w *Watch) tell(f Finding) {
	if failure := protect(func() { w.Observe(f) }); failure != "" {
		_ = protect(func() { slog.Error("drift Observe function failed", slog.String("error", failure)) }) // a panic of the logger leaves nobody to tell
	}
}

// protect says how f has panicked, "" if it has not.
func protect(f func()) (failure string) {
	defer func() {
		if p := recover(); p != nil {
			failure = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	f()
	return ""
}
