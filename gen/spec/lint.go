package spec

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Lint reports all mistakes of a spec at once.
func (s *Spec) Lint() error {
	l := s.linter()
	l.problems = slices.Clone(s.early)
	l.checkDocument()
	l.checkSchemas()
	l.checkWebhooks()
	if len(l.problems) == 0 { // otherwise these checks repeat the problems above in other words
		l.checkProvider()
		l.checkTypeField()
		l.checkKept()
		if l.invalid != nil {
			l.report(nil, "openapi", "not valid: %v; correct it", l.invalid)
		}
	}
	return l.err()
}

// Warnings returns the faults that [Spec.Lint] found and does not refuse.
func (s *Spec) Warnings() (out []string) {
	slices.SortFunc(s.warnings, inFile)
	for _, w := range slices.Compact(s.warnings) {
		out = append(out, w.Error())
	}
	return out
}

// linter looks for what would be lost silently, or become a package that misleads.
type linter struct {
	*Spec
	problems []problem
	aliases  map[string]string // name that an event comes by: the webhook
	formats  map[Scalar]bool   // formats that were reported
}

func (s *Spec) linter() *linter {
	return &linter{Spec: s, aliases: make(map[string]string), formats: make(map[Scalar]bool)}
}

func (l *linter) report(at *openapi3.Origin, path, format string, args ...any) {
	l.problems = append(l.problems, l.problem(at, path, format, args...))
}

// reportAt reports a mistake at a place of the document as it was written.
func (l *linter) reportAt(place []string, text string) {
	l.problems = append(l.problems, problem{l.text.place(place...), strings.Join(place, "."), text})
}

// warn reports something that the program will miss.
func (l *linter) warn(at *openapi3.Origin, path, format string, args ...any) {
	l.warnings = append(l.warnings, l.problem(at, path, format, args...))
}

func (s *Spec) problem(at *openapi3.Origin, path, format string, args ...any) problem {
	place := origin{file: s.text.file}
	if found, ok := s.text.lines[Position(at)>>16]; ok {
		place = found
	}
	return problem{place, path, fmt.Sprintf(format, args...)}
}

func (l *linter) err() error {
	if len(l.problems) == 0 {
		return nil
	}
	slices.SortFunc(l.problems, inFile)
	var errs []error
	for _, p := range slices.Compact(l.problems) {
		errs = append(errs, p)
	}
	return fmt.Errorf("gen: nothing was written, correct the spec first:\n%w", errors.Join(errs...))
}

// problem is one mistake in a spec: its place, the fault, and the remedy.
type problem struct {
	at   origin
	path string
	text string
}

func (p problem) Error() string {
	if p.at.line == 0 {
		return fmt.Sprintf("%s: %s: %s", p.at.file, p.path, p.text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.at.file, p.at.line, p.path, p.text)
}

func inFile(a, b problem) int {
	return cmp.Or(cmp.Compare(a.at.file, b.at.file), cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.path, b.path), cmp.Compare(a.text, b.text))
}

func (l *linter) checkDocument() {
	if len(l.Provider.Verify) == 0 {
		l.report(nil, "x-provider.verify", "there is nothing that says how a delivery is verified; write [{scheme: token, header: X-Token}], for example, or [{scheme: none}]")
	}
	if len(l.Doc.Webhooks) == 0 {
		l.report(nil, "webhooks", "there are none; add one entry per event type: an overlay can, {target: $, update: {webhooks: …}}")
	}
	for _, name := range []string{EnvelopeName, EventTypeName} {
		if l.Schemas()[name] == nil {
			l.report(nil, "components.schemas."+name, "there is none; add it, every event has it, or say in x-provider: {event: {type: …}} which property names the event")
		}
	}
}

// checkProvider checks the paths and the signed text in x-provider.
func (l *linter) checkProvider() {
	event := l.Provider.Event
	for _, path := range event.ID {
		l.checkEventPlace("id", path, l.notAName)
	}
	for _, path := range event.Time {
		l.checkEventPlace("time", path, l.notATime)
	}
	if l.typeIsNowhere {
		l.reportProvider("no body has "+event.Type+"; correct the name, or add it to the schemas", "event", "type")
	}
	for _, s := range l.Provider.Verify {
		l.checkScheme(s)
	}
}

// reportProvider reports a mistake at a place in x-provider.
func (l *linter) reportProvider(text string, place ...string) {
	l.reportAt(append([]string{providerName}, place...), text)
}

// checkEventPlace checks that a path of x-provider leads to a value in some body. In an object of which
// no property is listed it may lead anywhere.
func (l *linter) checkEventPlace(name, path string, wrong func(place) string) {
	owner, at := l.owner(path)
	switch {
	case owner == nil && !at.free:
		l.reportProvider("no body has "+path+"; correct the path, or add it to the schemas", "event", name)
	case owner != nil && wrong(at) != "":
		l.reportProvider(path+" "+wrong(at), "event", name)
	}
}

// notAName returns the mistake of a path to an id that ends in no value; "" for none.
func (l *linter) notAName(at place) string {
	of := at.plain.Value
	if IsHandWritten(of) || slices.Contains([]string{"string", "integer", "number"}, TypeOf(of)) {
		return ""
	}
	return "ends neither in a text nor in a number, so that events have no id; give the path to an id"
}

// notATime returns the mistake of a path to a time that cannot be read; "" for none.
func (l *linter) notATime(at place) string {
	of := at.plain.Value
	if IsHandWritten(of) || TypeOf(of) == "string" || ScalarOf(of).Kind == "integer" && !l.isAmount(of) || l.Clock() != "" {
		return ""
	}
	return "ends neither in a text nor in Unix seconds, so that events have no time; give the path to a time such as 2026-08-08T23:45:13Z, or leave it out"
}

func (l *linter) checkScheme(s Scheme) {
	timed := 0
	for _, text := range s.Text {
		if strings.Contains(text, "{time}") {
			timed++
		}
	}
	inText := timed > 0
	switch sent := strings.Contains(s.Value, "{time}"); {
	case sent && s.TimeHeader != "":
		l.reportProvider("the time is in "+s.Header+" and in "+s.TimeHeader+"; write one of them", "verify")
	case inText && timed < len(s.Text):
		l.reportProvider("{time} is in one text and not in another, of which a code fits any time; write it into all of them, or make them two schemes", "verify")
	case inText && !sent && s.TimeHeader == "":
		l.reportProvider("{time} is signed, and no header has it; write it into value, such as t={time},v1={mac}, or name a timeHeader", "verify")
	case !inText && (sent || s.TimeHeader != ""):
		l.reportProvider("the time is sent, and not signed, so that anybody can change it; write {time} into text, or leave it out", "verify")
	}
	if slices.ContainsFunc(s.Text, sideBySide.MatchString) {
		l.warn(nil, providerName+".verify", "nothing stands between two headers that are signed, so that the end of one may pass for the start of the other; do not name an event by them")
	}
	for _, header := range []string{s.IDHeader, s.TypeHeader} {
		signs := "{header:" + strings.ToLower(header) + "}"
		if header != "" && (s.Text == nil || slices.ContainsFunc(s.Text, func(text string) bool { return !strings.Contains(strings.ToLower(text), signs) })) {
			l.reportProvider(header+" names the event, and is not signed, so that anybody can change it; write {header:"+header+"} into each text", "verify")
		}
	}
}

var sideBySide = regexp.MustCompile(`\{header:[^}]*\}\{header:`)
