package spec

import (
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Family is the events that share a struct.
type Family struct {
	Struct string   // PaymentEvent
	Key    string   // the Go expression for the id of what the event is about
	Paths  []string // of that id
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
	IDs     Paths          // x-event-id
	Times   Paths          // x-event-time
	Example map[string]any // path: a value that others of the family have not
}

// Families lists the events in the order of the spec. The spec has passed the
// linter.
func (s *Spec) Families() []Family {
	var out []Family
	index := make(map[string]int)
	for _, name := range InOrder(s.Doc.Webhooks, ItemOrigin) {
		post := s.Doc.Webhooks[name].Post
		e := newEvent(name, post)
		i, ok := index[e.Struct]
		if !ok {
			i = len(out)
			index[e.Struct] = i
			paths, _ := KeyPaths(post)
			out = append(out, Family{Struct: e.Struct, Key: s.keyOf(post), Paths: paths, Needs: s.essentials(BodySchema(post).Value)})
		}
		out[i].Events = append(out[i].Events, e)
	}
	return out
}

func newEvent(name string, post *openapi3.Operation) Event {
	aliases, _ := aliasesOf(post)
	example, _ := exampleOf(post)
	url := ""
	if post.ExternalDocs != nil {
		url = post.ExternalDocs.URL
	}
	summary, _, _ := strings.Cut(strings.TrimSpace(post.Summary), "\n")
	return Event{
		Type:    name,
		Name:    GoName(name),
		Struct:  SchemaName(BodySchema(post).Ref),
		Summary: summary,
		Details: strings.TrimSpace(post.Description),
		URL:     url,
		Aliases: aliases,
		Example: example,
		IDs:     pathsOf(post, eventIDName),
		Times:   pathsOf(post, eventTimeName),
	}
}

// aliasesOf reads x-aliases.
func aliasesOf(post *openapi3.Operation) ([]string, error) {
	value, ok := post.Extensions[aliasesName]
	if !ok {
		return nil, nil
	}
	names, ok := StringsOf(value)
	if !ok {
		return nil, fmt.Errorf("%s is not a list of names; write [OTHER_NAME], for example", aliasesName)
	}
	return names, nil
}

const (
	eventIDName   = "x-event-id"   // path, or paths, to what names the event together with its type
	eventTimeName = "x-event-time" // path, or paths, to when the event came to be
)

// pathsOf reads an extension that is a path or several; nil if there is none.
func pathsOf(post *openapi3.Operation, name string) Paths {
	switch value := post.Extensions[name].(type) {
	case string:
		return Paths{value}
	case []any:
		paths, _ := StringsOf(value)
		return paths
	}
	return nil
}

// checkPlaces checks x-event-id and x-event-time.
func (l *linter) checkPlaces(path string, post *openapi3.Operation, body *openapi3.SchemaRef) {
	for _, name := range []string{eventIDName, eventTimeName} {
		paths := pathsOf(post, name)
		if _, ok := post.Extensions[name]; ok && paths == nil {
			l.report(post.Origin, path, "%s is neither a path nor a list of paths; write charge.id, for example", name)
		}
		for _, p := range paths {
			if _, err := l.follow(body.Value, p); err != nil {
				l.report(post.Origin, path, "%s %v", name, err)
			}
		}
	}
}

// exampleOf reads x-example.
func exampleOf(post *openapi3.Operation) (map[string]any, error) {
	value, ok := post.Extensions[exampleName]
	if !ok {
		return nil, nil
	}
	values, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a mapping; write {payment.status: RECEIVED}, for example", exampleName)
	}
	return values, nil
}
