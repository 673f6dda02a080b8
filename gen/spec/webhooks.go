package spec

import (
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Family is the events that share a struct.
type Family struct {
	Struct string   // PaymentEvent
	Paths  []string // to the ids of the events' entities
	Needs  []Essential
	Events []Event
}

// Event is a webhook of the spec.
type Event struct {
	Type    string // PAYMENT_RECEIVED
	Name    string // PaymentReceived
	Struct  string // PaymentEvent
	Summary string // The money of a charge is available.
	Details string // more than the summary, seldom
	URL     string // its documentation
	Aliases []string
	Keys    Paths          // x-entity-key, as package provider follows it
	IDs     Paths          // x-event-id
	Times   Paths          // x-event-time
	Test    string         // x-test
	Ping    bool           // x-ping
	Example map[string]any // path: a value that others of the family have not
}

// Families lists the events in the order of the spec. The spec has passed the
// linter.
func (s *Spec) Families() []Family {
	var out []Family
	index := make(map[string]int)
	for _, name := range InOrder(s.Doc.Webhooks, ItemOrigin) {
		post := s.Doc.Webhooks[name].Post
		e := s.newEvent(name, post)
		i, ok := index[e.Struct]
		if !ok {
			i = len(out)
			index[e.Struct] = i
			out = append(out, Family{Struct: e.Struct, Needs: s.essentials(BodySchema(post).Value)})
		}
		for _, path := range KeyPaths(post) {
			if !slices.Contains(out[i].Paths, path) {
				out[i].Paths = append(out[i].Paths, path)
			}
		}
		out[i].Events = append(out[i].Events, e)
	}
	return out
}

func (s *Spec) newEvent(name string, post *openapi3.Operation) Event {
	url := ""
	if post.ExternalDocs != nil {
		url = post.ExternalDocs.URL
	}
	body := BodySchema(post).Value
	summary, _, _ := strings.Cut(strings.TrimSpace(post.Summary), "\n")
	return Event{
		Type:    name,
		Name:    GoName(name),
		Struct:  SchemaName(BodySchema(post).Ref),
		Summary: summary,
		Details: strings.TrimSpace(post.Description),
		URL:     url,
		Aliases: aliasesOf(post),
		Example: exampleOf(post),
		Keys:    s.marked(body, KeyPaths(post)),
		IDs:     s.marked(body, pathsOf(post.Extensions[eventIDName])),
		Times:   s.marked(body, pathsOf(post.Extensions[eventTimeName])),
		Test:    strings.Join(s.marked(body, pathsOf(post.Extensions[testName])), ""),
		Ping:    post.Extensions[pingName] == true,
	}
}

// marked are paths as package provider follows them: with a question mark behind
// each name that is that of an optional.Value, and a # behind a value that may be a number.
func (s *Spec) marked(event *openapi3.Schema, paths []string) (out []string) {
	for _, path := range paths {
		if at, err := s.follow(event, path); err == nil {
			path = strings.Join(at.marked, ".")
			if f, _ := s.FormatOf(at.plain.Value); f.Number || slices.Contains([]string{"integer", "number"}, TypeOf(at.plain.Value)) {
				path += "#"
			}
		}
		out = append(out, path)
	}
	return out
}

// Places returns the paths of x-provider's values in events, such as the id. What no schema
// has may be a text or a number.
func (s *Spec) Places(paths Paths) (out []string) {
	for _, path := range paths {
		if owner, _ := s.owner(path); owner != nil {
			out = append(out, s.marked(owner, []string{path})...)
		} else {
			out = append(out, path+"#")
		}
	}
	return out
}

// owner is the schema that has a path, the envelope or else an event, and where the
// path ends.
func (s *Spec) owner(path string) (*openapi3.Schema, place) {
	schemas := []*openapi3.Schema{s.Envelope()}
	for _, post := range operations(s.Doc.Webhooks) {
		schemas = append(schemas, BodySchema(post.Operation).Value)
	}
	for _, schema := range schemas {
		if at, err := s.follow(schema, path); err == nil {
			return schema, at
		}
	}
	return nil, place{}
}

// Clock is the Go type of the events' time, if it is the package's own.
func (s *Spec) Clock() string {
	for _, path := range s.Provider.Event.Time {
		if owner, at := s.owner(path); owner != nil {
			if f, _ := s.FormatOf(at.plain.Value); f.Go != "string" && !strings.Contains(f.Go, ".") {
				return f.Go
			}
		}
	}
	return ""
}

// aliasesOf are other names that the event type comes by.
func aliasesOf(post *openapi3.Operation) []string { return StringsOf(post.Extensions[aliasesName]) }

const (
	eventIDName   = "x-event-id"   // path, or paths, to the value that names the event together with its type
	eventTimeName = "x-event-time" // path, or paths, to when the event came to be
	testName      = "x-test"       // path to a value that is true where no money moved
	pingName      = "x-ping"       // true: the event only tests the address
)

// checkPlaces checks where x-event-id, x-event-time and x-test lead.
func (l *linter) checkPlaces(path string, post *openapi3.Operation, body *openapi3.SchemaRef) {
	for _, name := range []string{eventIDName, eventTimeName, testName} {
		for _, p := range pathsOf(post.Extensions[name]) {
			at, err := l.follow(body.Value, p)
			switch {
			case err != nil:
				l.report(post.Origin, path, "%s %v", name, err)
			case name == eventIDName && l.notAName(at) != "":
				l.report(post.Origin, path, "%s %s %s", name, p, l.notAName(at))
			case name == eventTimeName && l.notATime(at) != "":
				l.report(post.Origin, path, "%s %s %s", name, p, l.notATime(at))
			case name == testName && TypeOf(at.plain.Value) != "boolean":
				l.report(post.Origin, path, "%s %s is not the path to one boolean; give the one that is true where no money moved", name, p)
			}
		}
	}
}

// exampleOf is x-example.
func exampleOf(post *openapi3.Operation) map[string]any {
	values, _ := post.Extensions[exampleName].(map[string]any)
	return values
}
