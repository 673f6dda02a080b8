package spec

import (
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// checkProvider checks x-provider's paths in the bodies, and the signed text.
func (l *linter) checkProvider() {
	if !l.HasProvider {
		return
	}
	at := l.Doc.Origin
	for name, paths := range map[string]Paths{"id": l.Provider.Event.ID, "time": l.Provider.Event.Time} {
		for _, path := range paths {
			root, _, _ := strings.Cut(path, ".")
			if owner, _ := l.owner(root); owner == nil {
				l.report(at, providerName+".event."+name, "no body has %s; correct the path, or add it to the schemas", path)
			}
		}
	}
	for _, s := range l.Provider.Verify {
		l.checkScheme(at, s)
	}
}

func (l *linter) checkScheme(at *openapi3.Origin, s Scheme) {
	path, inText := providerName+".verify", strings.Contains(strings.Join(s.Text, ""), "{time}")
	switch sent := strings.Contains(s.Value, "{time}"); {
	case sent && s.TimeHeader != "":
		l.report(at, path, "the time is in %s and in %s; write one of them", s.Header, s.TimeHeader)
	case inText && !sent && s.TimeHeader == "":
		l.report(at, path, "{time} is signed, and no header has it; write it into value, such as t={time},v1={mac}, or name a timeHeader")
	case !inText && (sent || s.TimeHeader != ""):
		l.report(at, path, "the time is sent, and not signed, so that anybody can change it; write {time} into text, or leave it out")
	}
}
