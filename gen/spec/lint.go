package spec

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"gopkg.in/yaml.v3"
)

// Lint reports all mistakes of a spec at once.
func (s *Spec) Lint() error {
	l := s.linter()
	l.checkDocument()
	l.checkSchemas()
	l.checkBodies()
	l.checkWebhooks()
	l.checkPaths()
	if len(l.problems) == 0 { // otherwise these checks repeat the problems above in other words
		l.checkProvider()
		l.checkUnused()
		l.checkTypeField()
		if l.invalid != nil {
			l.report(nil, "openapi", "not valid: %v; correct it", l.invalid)
		}
	}
	return l.err()
}

// Warnings returns the faults that [Spec.Lint] found and does not refuse.
func (s *Spec) Warnings() []string {
	slices.SortFunc(s.warnings, inFile)
	var out []string
	for _, w := range slices.Compact(s.warnings) {
		out = append(out, w.Error())
	}
	return out
}

// linter looks for schemas that would become Go code that does not compile, that loses
// something silently, or that has no documentation.
type linter struct {
	*Spec
	problems []problem
	names    map[string]string // Go name in the package: the path that it comes from
	events   map[string]string // name that an event comes by: the webhook
	used     map[string]bool   // event schemas that webhooks have
	formats  map[Scalar]bool   // formats that were reported
}

func (s *Spec) linter() *linter {
	return &linter{Spec: s, names: s.reserved(), events: make(map[string]string), used: make(map[string]bool), formats: make(map[Scalar]bool)}
}

// reserved returns the names that a package has without its spec, and what they name.
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

func (l *linter) report(at *openapi3.Origin, path, format string, args ...any) {
	l.problems = append(l.problems, problem{
		file: l.Name,
		line: line(at),
		path: path,
		text: fmt.Sprintf(format, args...),
	})
}

// warn reports something that the readers of the code will miss, and the code will not.
func (l *linter) warn(at *openapi3.Origin, path, format string, args ...any) {
	l.warnings = append(l.warnings, problem{l.Name, line(at), path, fmt.Sprintf(format, args...)})
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

func inFile(a, b problem) int {
	return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.path, b.path), cmp.Compare(a.text, b.text))
}

func list(values []any) string { return strings.Trim(fmt.Sprint(values), "[]") }

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

// checkProvider checks the paths and the signed text in x-provider.
func (l *linter) checkProvider() {
	if !l.HasProvider {
		return
	}
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
	names := append([]string{providerName}, place...)
	var root yaml.Node
	found := problem{l.Name, 0, strings.Join(names, "."), text}
	if yaml.Unmarshal(l.Data, &root) == nil && len(root.Content) > 0 {
		found.line = lineAt(root.Content[0], names)
	}
	l.problems = append(l.problems, found)
}

// checkEventPlace checks that a path of x-provider leads to a value in some body. In an object of which
// no property is listed it may lead anywhere.
func (l *linter) checkEventPlace(name, path string, wrong func(place) string) {
	owner, at := l.owner(path)
	switch {
	case owner == nil && !l.leadsIntoFreeObject(path):
		l.reportProvider("no body has "+path+"; correct the path, or add it to the schemas", "event", name)
	case owner != nil && wrong(at) != "":
		l.reportProvider(path+" "+wrong(at), "event", name)
	}
}

func (l *linter) leadsIntoFreeObject(path string) bool {
	for end, letter := range path {
		if letter != '.' {
			continue
		}
		if owner, at := l.owner(path[:end]); owner != nil {
			of := at.plain.Value
			_, isScalar := l.FormatOf(of)
			if IsHandWritten(of) || !isScalar && len(of.Properties) == 0 && of.Items == nil {
				return true
			}
		}
	}
	return false
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
	if IsHandWritten(of) || TypeOf(of) == "string" || l.Clock() != "" {
		return ""
	}
	return "does not end in a text, so that events have no time; give the path to a time such as 2026-08-08T23:45:13Z, or leave it out"
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
}

// checkPaths checks the operations that become methods of the client, and its types. Bodies and
// answers that are components are checked there.
func (l *linter) checkPaths() {
	for _, o := range l.Operations() {
		path := "paths." + o.Path + "." + strings.ToLower(o.Method)
		l.checkCall(path, o)
		if o.RequestBody != nil && o.RequestBody.Ref == "" && !TakesEmptyObject(o.Operation) {
			l.checkContent(o.Origin, path+".requestBody", o.RequestBody.Value.Content)
		}
		for status, answer := range o.Responses.Map() {
			if answer.Ref == "" {
				l.checkContent(o.Origin, path+".responses."+status, answer.Value.Content)
			}
		}
	}
}

var pathParameter = regexp.MustCompile(`\{[^}]*}`)

func (l *linter) checkCall(path string, o Operation) {
	first, _ := utf8.DecodeRuneInString(o.OperationID)
	if !token.IsIdentifier(o.OperationID) || !unicode.IsLower(first) {
		l.report(o.Origin, path+".operationId", "%q is not the name of a method; write one such as getOrder", o.OperationID)
	}
	if !strings.HasSuffix(o.Summary, ".") || strings.Contains(o.Summary, "\n") {
		l.warn(o.Origin, path+".summary", "it is not a sentence in one line; write one such as: Shows an order.")
	}
	if !hasLink(o.ExternalDocs) {
		l.warn(o.Origin, path+".externalDocs.url", noLink)
	}
	if in := pathParameter.FindAllString(o.Path, -1); len(in) > 1 || len(in) == 1 && in[0] != "{id}" {
		l.report(o.Origin, path, "the client knows one parameter in a path; name it {id}")
	}
	for _, p := range o.Query {
		if QueryType(p) == "" || !token.IsIdentifier(ParameterName(p)) {
			l.report(o.Origin, path+".parameters."+p.Name, "it is not an integer or a string with a name of Go; write its type, or leave it out")
		}
	}
	answers := slices.Collect(keysOf(o.Responses.Map()))
	successes := slices.DeleteFunc(answers, func(status string) bool { return status[0] != '2' })
	if len(successes) != 1 || (o.Answer() == nil) != (successes[0] == "204") {
		l.report(o.Origin, path+".responses", "there is not one success; write one, with JSON, or 204 without")
	}
}
