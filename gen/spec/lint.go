package spec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// problem is one mistake in a spec: its place, the fault, and the remedy.
type problem struct {
	file string
	line int
	path string
	text string
}

func (p problem) Error() string {
	if p.line == 0 {
		return fmt.Sprintf("%s: %s: %s", p.file, p.path, p.text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.file, p.line, p.path, p.text)
}

// linter looks for schemas that would become Go code that does not compile, that loses
// something silently, or that has no documentation.
type linter struct {
	*Spec
	problems []problem
	names    map[string]string // Go name in the package: the path that it comes from
	events   map[string]string // name that an event comes by: the webhook
	used     map[string]bool   // event schemas that webhooks have
	formats  map[Scalar]bool   // those that were reported
}

// Lint reports all mistakes of a spec at once.
func (s *Spec) Lint() error {
	l := s.linter()
	l.checkDocument()
	l.checkSchemas()
	l.checkBodies()
	l.checkWebhooks()
	l.checkPaths()
	if len(l.problems) == 0 { // else these would repeat the findings above in other words
		l.checkProvider()
		l.checkUnused()
		l.checkTypeField()
		if l.invalid != nil {
			l.report(nil, "openapi", "not valid: %v; correct it", l.invalid)
		}
	}
	return l.err()
}

func (s *Spec) linter() *linter {
	return &linter{Spec: s, names: s.reserved(), events: make(map[string]string), used: make(map[string]bool), formats: make(map[Scalar]bool)}
}

func (l *linter) err() error {
	if len(l.problems) == 0 {
		return nil
	}
	slices.SortFunc(l.problems, inFile)
	errs := make([]error, len(l.problems))
	for i, p := range l.problems {
		errs[i] = p
	}
	return fmt.Errorf("gen: nothing was written, correct the spec first:\n%w", errors.Join(errs...))
}

func (l *linter) report(at *openapi3.Origin, path, format string, args ...any) {
	l.problems = append(l.problems, problem{
		file: l.Name,
		line: line(at),
		path: path,
		text: fmt.Sprintf(format, args...),
	})
}

// warn reports a lack that the code can do without, and its reader hardly.
func (l *linter) warn(at *openapi3.Origin, path, format string, args ...any) {
	l.warnings = append(l.warnings, problem{l.Name, line(at), path, fmt.Sprintf(format, args...)})
}

// Warnings returns the faults that [Spec.Lint] would have repaired, and does not refuse.
func (s *Spec) Warnings() []string {
	slices.SortFunc(s.warnings, inFile)
	var out []string
	for _, w := range slices.Compact(s.warnings) {
		out = append(out, w.Error())
	}
	return out
}

func inFile(a, b problem) int {
	return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.path, b.path), cmp.Compare(a.text, b.text))
}

func (l *linter) checkDocument() {
	if l.HasProvider && len(l.Provider.Verify) == 0 {
		l.report(nil, "x-provider.verify", "there is nothing that says how a delivery is verified; write [{scheme: token, header: X-Token}], for example, or [{scheme: none}]")
	}
	if version := l.Doc.OpenAPI; !strings.HasPrefix(version, "3.1.") {
		l.report(nil, "openapi", "this is version %q, which may have no webhooks; write 3.1.0", version)
	}
	if len(l.Doc.Webhooks) == 0 {
		l.report(nil, "webhooks", "there are none; add one entry per event type")
	}
	for _, name := range []string{EnvelopeName, EventTypeName} {
		if l.Schemas()[name] == nil {
			l.report(nil, "components.schemas."+name, "there is none; add it, every event has it, or say in x-provider: {event: {type: …}} which property names the event")
		}
	}
}

// reserved are the names that each package has without its spec.
func (s *Spec) reserved() map[string]string {
	names := map[string]string{
		"Dispatcher":   "the dispatcher",
		"Event":        "the interface of all events",
		"UnknownEvent": "the struct of newer events",
		"EventUnknown": "the method OnUnknown",
	}
	maps.Copy(names, s.ownTypes())
	maps.Copy(names, s.Provider.Reserved)
	return names
}

// claim takes a name in the generated package.
func (l *linter) claim(at *openapi3.Origin, path, GoName string) {
	if other, ok := l.names[GoName]; ok {
		l.report(at, path, "its Go name %s is that of %s too; rename one of them", GoName, other)
		return
	}
	l.names[GoName] = path
}

// checkSentence checks a text that becomes a comment.
func (l *linter) checkSentence(at *openapi3.Origin, path, text string) {
	first, _, _ := strings.Cut(text, " ")
	switch {
	case strings.TrimSpace(text) == "":
		l.warn(at, path, "there is none; write a sentence that starts with A, An or The")
	case !slices.Contains([]string{"A", "An", "The"}, first):
		l.warn(at, path, "it becomes the middle of a sentence; start it with A, An or The")
	case !strings.HasSuffix(strings.TrimSpace(text), "."):
		l.warn(at, path, "it is not a sentence; end it with a full stop")
	}
}
