package spec

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"
)

func (l *linter) checkWebhooks() {
	for _, name := range InOrder(l.Doc.Webhooks, ItemOrigin) {
		item := l.Doc.Webhooks[name]
		path := "webhooks." + name
		l.checkEventType(item.Origin, path, name, path)
		for method, operation := range item.Operations() {
			if method != "POST" {
				l.report(operation.Origin, path+"."+strings.ToLower(method), "the providers post their events; write post")
			}
		}
		if item.Post != nil {
			l.checkPost(path+".post", item.Post)
		} else if len(item.Operations()) == 0 {
			l.report(item.Origin, path, "there is no operation; add post")
		}
	}
}

func (l *linter) checkPost(path string, post *openapi3.Operation) {
	switch body := BodySchema(post); {
	case body == nil:
		l.report(post.Origin, path+".requestBody", "there is no schema of JSON; refer to a request body that has one")
	case !IsEvent(body.Value):
		l.report(post.Origin, path+".requestBody", "%s is not the schema of an event; say in x-provider which property names the event, {event: {type: …}}, or give it allOf: [$ref: %s%s]", SchemaName(body.Ref), SchemaPrefix, EnvelopeName)
	default:
		if _, ok := post.Extensions[EntityKeyName]; !ok {
			l.warn(post.Origin, path, `there is no %s, so that its events have no order; give the path to the id of what the event is about, "" if it is about nothing`, EntityKeyName)
		}
		l.checkPlaces(path, post, body)
		l.checkExample(path, post, body)
	}
	for _, name := range aliasesOf(post) {
		l.checkEventType(post.Origin, path+"."+aliasesName+"."+name, name, strings.TrimSuffix(path, ".post"))
	}
}

// checkEventType checks a name that an event type comes by.
func (l *linter) checkEventType(at *openapi3.Origin, path, name, event string) {
	if strings.ContainsFunc(name, isStrange) {
		l.report(at, path, "the name of an event has ASCII letters, digits and signs, and no space, else two may look the same; correct it")
		return
	}
	if other, ok := l.aliases[name]; ok && other != event {
		l.report(at, path, "%s is a name of two events, of %s too; leave it to one of them, and give each event its own %s where YAML merges them",
			name, other, aliasesName)
		return
	}
	l.aliases[name] = event
}

func isStrange(r rune) bool { return r <= ' ' || r >= unicode.MaxASCII }

func (l *linter) checkTypeField() {
	if l.TypeField() == "" {
		l.report(SchemaOrigin(l.Schemas()[EnvelopeName]), "components.schemas."+EnvelopeName,
			"none of its properties names the event; give the one that does $ref: %s%s", SchemaPrefix, EventTypeName)
	}
}

// checkExample checks x-example, which the bodies for tests take as it is.
func (l *linter) checkExample(path string, post *openapi3.Operation, body *openapi3.SchemaRef) {
	values := exampleOf(post)
	for _, at := range slices.Sorted(maps.Keys(values)) {
		property := l.lookUp(body, at)
		switch {
		case property == nil:
			l.report(post.Origin, path+"."+exampleName, "there is no %s in the body; correct the path", at)
		case typeIsNoScalar(property.Value):
			l.report(post.Origin, path+"."+exampleName, "%s has properties or elements; give the path of one, such as list.0.name", at)
		case !IsValue(property.Value, values[at]):
			l.report(post.Origin, path+"."+exampleName, "%v is not a value of %s; correct it", values[at], at)
		}
	}
}

func typeIsNoScalar(s *openapi3.Schema) bool {
	return IsHandWritten(s) || slices.Contains([]string{"object", "array"}, TypeOf(s))
}

// lookUp follows a path of properties, and of 0 for the first element of an
// array; nil if it leads nowhere.
func (l *linter) lookUp(at *openapi3.SchemaRef, path string) *openapi3.SchemaRef {
	for name := range strings.SplitSeq(path, ".") {
		next, _ := l.Property(at.Value, name)
		if name == "0" {
			next = at.Value.Items
		}
		if next == nil {
			return nil
		}
		at, _ = WithoutNull(next)
	}
	return at
}

// checkPlaces checks where the paths of a webhook lead.
func (l *linter) checkPlaces(path string, post *openapi3.Operation, body *openapi3.SchemaRef) {
	for name, wrong := range map[string]func(place) string{EntityKeyName: l.notAKey, eventIDName: l.notAName, eventTimeName: l.notATime, testName: l.notATest} {
		for _, p := range pathsOf(post.Extensions[name]) {
			at, err := l.follow(body.Value, p)
			switch {
			case err != nil:
				l.report(post.Origin, path, "%s %v", name, err)
			case wrong(at) != "":
				l.report(post.Origin, path, "%s %s %s", name, p, wrong(at))
			case IsPersonal(at.plain) && (name == EntityKeyName || name == eventIDName):
				l.warn(post.Origin, path, "%s %s is personal, and becomes a part of the event that is stored, logged and shown as it is; give the path to an id that says nothing of a person", name, p)
			}
		}
	}
}

// notAKey returns the mistake of a path to what an event is about; "" for none.
func (l *linter) notAKey(at place) string {
	if of := at.plain; of.Ref != "" || !slices.Contains([]string{"string", "integer"}, TypeOf(of.Value)) || l.isAmount(of.Value) {
		return "does not end in an id, a text or a whole number; give the path to one"
	}
	return ""
}

// notATest returns the mistake of a path to what tells a test; "" for none.
func (l *linter) notATest(at place) string {
	if TypeOf(at.plain.Value) != "boolean" {
		return "is not the path to one boolean; give the one that is true where no money moved"
	}
	return ""
}

func (l *linter) isAmount(of *openapi3.Schema) bool {
	f, _ := l.FormatOf(of)
	return f.Amount
}
