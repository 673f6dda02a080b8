package drift

import (
	"log/slog"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
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
	err := pgtx.Protect(func() error { w.Observe(f); return nil })
	if err == nil {
		return
	}
	_ = pgtx.Protect(func() error { // a panic of the logger leaves nobody to tell
		slog.Error("drift Observe function failed", slog.String("error", err.Error()))
		return nil
	})
}
