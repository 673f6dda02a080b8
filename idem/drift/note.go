package drift

import "time"

// Note keeps a finding that no comparison of bodies makes, such as
// [HeaderDiffers], and reports whether it is new. eventType and path are kept as
// they are: pass what a stranger chose through [Name].
func (w *Watch) Note(eventType, path string, kind Kind) (isNew bool) {
	news, isNew := w.keep(finding{eventType, path, kind}, time.Now())
	if isNew && w.Observe != nil {
		w.Observe(news)
	}
	return isNew
}
