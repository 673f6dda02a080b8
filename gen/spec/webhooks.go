package spec

import (
	"maps"
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
	Keys    []string       // x-entity-key, as package provider follows it
	IDs     []string       // x-event-id
	Times   []string       // x-event-time
	Test    string         // x-test
	Ping    bool           // x-ping
	Example map[string]any // values of this event type, by their paths; other types of the family have other values
}

// Families lists the events in the order of the spec, which has passed the linter.
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
	body := BodySchema(post).Value
	summary, _, _ := strings.Cut(strings.TrimSpace(post.Summary), "\n")
	e := Event{
		Type:    name,
		Name:    post.Extensions[goNameName].(string),
		Struct:  SchemaName(BodySchema(post).Ref),
		Summary: summary,
		Details: strings.TrimSpace(post.Description),
		Aliases: aliasesOf(post),
		Example: exampleOf(post),
		Keys:    s.marked(body, KeyPaths(post)),
		IDs:     s.marked(body, pathsOf(post.Extensions[eventIDName])),
		Times:   s.marked(body, pathsOf(post.Extensions[eventTimeName])),
		Test:    strings.Join(s.marked(body, pathsOf(post.Extensions[testName])), ""),
		Ping:    post.Extensions[pingName] == true,
	}
	if post.ExternalDocs != nil {
		e.URL = post.ExternalDocs.URL
	}
	return e
}

const (
	eventIDName   = "x-event-id"   // path, or paths, to the value that names the event together with its type
	eventTimeName = "x-event-time" // path, or paths, to when the event came to be
	testName      = "x-test"       // path to a value that is true where no money moved
	pingName      = "x-ping"       // true: the event only tests the address
)

// sharedNames are the extensions that the webhooks of a schema may share: they are said once, in the schema.
var sharedNames = []string{EntityKeyName, eventIDName, eventTimeName, testName}

// aliasesOf returns other names of the event type.
func aliasesOf(post *openapi3.Operation) []string { return StringsOf(post.Extensions[aliasesName]) }

// exampleOf returns the values of x-example by their paths.
func exampleOf(post *openapi3.Operation) map[string]any {
	values, _ := post.Extensions[exampleName].(map[string]any)
	return values
}

// KeyPaths returns the paths of x-entity-key. An event without an entity has none.
func KeyPaths(post *openapi3.Operation) Paths { return pathsOf(post.Extensions[EntityKeyName]) }

// pathsOf returns the paths in an extension that is a path, a list of paths, or "".
func pathsOf(extension any) Paths {
	if path, ok := extension.(string); ok && path != "" {
		return Paths{path}
	}
	return StringsOf(extension)
}

// marked returns paths in the form that package provider reads: with a question mark behind the
// name of a value.Optional, and a # behind a value that may be a number.
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

// Places returns the paths of x-provider's values in events, such as the id. A value that no schema
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

// owner returns the first schema that has a path, the envelope or an event, and the end of the path. Without
// one, the place is free if the path may lead on from where some schema ends.
func (s *Spec) owner(path string) (*openapi3.Schema, place) {
	schemas := []*openapi3.Schema{s.Envelope()}
	for _, post := range operations(s.Doc.Webhooks) {
		schemas = append(schemas, BodySchema(post.Operation).Value)
	}
	free := false
	for _, schema := range schemas {
		at, err := s.follow(schema, path)
		if err == nil {
			return schema, at
		}
		free = free || at.free
	}
	return nil, place{free: free}
}

// Clock returns the Go type of the events' time if that type is in the provider's package, or "".
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

// Operation is a webhook, or an operation of the provider's API.
type Operation struct {
	*openapi3.Operation

	Method string // PUT
	Path   string // /webhooks/{id}; PAYMENT_RECEIVED for a webhook
}

// Posts lists the operations of the webhooks, in the order of the spec: first the events, then the
// questions, which are no events.
func (s *Spec) Posts() []Operation {
	return append(operations(s.Doc.Webhooks), operations(s.questions)...)
}

// Operations lists the operations under paths, in the order of the spec.
func (s *Spec) Operations() []Operation { return operations(s.Doc.Paths.Map()) }

// Schemas returns the schemas of the JSON in an operation's request and responses.
func (o Operation) Schemas() []*openapi3.SchemaRef {
	out := []*openapi3.SchemaRef{BodySchema(o.Operation)}
	answers := o.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(answers)) {
		out = append(out, jsonOf(answers[status].Value.Content))
	}
	return slices.DeleteFunc(out, func(s *openapi3.SchemaRef) bool { return s == nil })
}

// BodySchema returns the schema of the JSON in an operation's request; nil if there is none.
func BodySchema(o *openapi3.Operation) *openapi3.SchemaRef {
	if o.RequestBody == nil || o.RequestBody.Value == nil {
		return nil
	}
	return jsonOf(o.RequestBody.Value.Content)
}

func operations(items map[string]*openapi3.PathItem) (out []Operation) {
	for _, path := range InOrder(items, ItemOrigin) {
		byMethod := items[path].Operations()
		for _, method := range InOrder(byMethod, operationOrigin) {
			out = append(out, Operation{byMethod[method], method, path})
		}
	}
	return out
}

func jsonOf(content openapi3.Content) *openapi3.SchemaRef {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if isJSON(name) && content[name] != nil {
			return content[name].Schema
		}
	}
	return nil
}

func isJSON(media string) bool { return strings.Contains(media, "json") || media == "*/*" }

// Reachable returns the schemas that operations refer to, directly or through others.
func (s *Spec) Reachable(from []Operation) map[*openapi3.Schema]bool {
	out := make(map[*openapi3.Schema]bool)
	for _, o := range from {
		for _, ref := range o.Schemas() {
			s.reach(ref, out)
		}
	}
	return out
}

// reach adds the schemas that a value has in it, at any depth.
func (s *Spec) reach(ref *openapi3.SchemaRef, out map[*openapi3.Schema]bool) {
	of := s.Resolved(ref)
	if of == nil || out[of] {
		return
	}
	if out[of] = true; IsHandWritten(of) {
		return
	}
	for _, inner := range inside(of) {
		s.reach(inner, out)
	}
}

// setAside moves the webhooks that are no events from the document to s.questions. Only the types of
// their requests and responses are generated.
func (s *Spec) setAside() {
	s.questions = make(map[string]*openapi3.PathItem)
	for name, item := range s.Doc.Webhooks {
		if item.Post != nil && item.Post.Extensions[isEventName] == false {
			s.questions[name] = item
			delete(s.Doc.Webhooks, name)
		}
	}
}

const isEventName = "x-event" // false: the webhook is no event, and the provider waits for the answer
