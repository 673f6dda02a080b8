package spec

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"gopkg.in/yaml.v3"
)

func (l *linter) checkSchemas() {
	for _, name := range InOrder(l.Schemas(), SchemaOrigin) {
		ref := l.Schemas()[name]
		at, s, path := SchemaOrigin(ref), ref.Value, "components.schemas."+name
		switch {
		case IsHandWritten(s):
		case len(s.Enum) > 0:
			l.checkEnum(at, path, s)
		default:
			l.checkObject(at, path, s)
		}
	}
}

func (l *linter) checkEnum(at *openapi3.Origin, path string, s *openapi3.Schema) {
	docs, _ := s.Extensions[EnumDocsName].(map[string]any)
	for _, value := range slices.Sorted(maps.Keys(docs)) {
		if !slices.Contains(s.Enum, any(value)) {
			l.report(at, path, "%s, which "+EnumDocsName+" describes, is not a value of the enum; correct it", value)
		}
	}
}

func (l *linter) checkObject(at *openapi3.Origin, path string, s *openapi3.Schema) {
	for _, name := range s.Required {
		if s.Properties[name] == nil && (!IsEvent(s) || l.Envelope().Properties[name] == nil) {
			l.warn(at, path+".required", "there is no property %q; correct it, or add it", name)
		}
	}
	l.checkEssentials(at, path, s)
	for _, name := range InOrder(s.Properties, SchemaOrigin) {
		ref := s.Properties[name]
		if IsPersonal(ref) && path == "components.schemas."+EnvelopeName {
			l.report(SchemaOrigin(ref), path+"."+name, "the envelope is printed, and nothing in it may be personal; move the property to the events")
		}
		l.checkProperty(path+"."+name, ref)
	}
}

// checkProperty checks the schema that becomes the type of a field.
func (l *linter) checkProperty(path string, ref *openapi3.SchemaRef) {
	at, plain := SchemaOrigin(ref), ref
	if v := ref.Value.Example; v != nil && !IsValue(ref.Value, v) {
		l.warn(at, path, "its example, %v, is not a value of its, and not used; correct it", v)
	}
	for plain.Ref == "" && plain.Value.Items != nil {
		plain = plain.Value.Items
	}
	plain, _ = WithoutNull(plain)
	if plain.Ref != "" || IsHandWritten(plain.Value) {
		return // or JSON that is kept as it was sent
	}
	l.checkFormat(at, path, plain.Value)
}

// IsValue reports whether a value fits a schema.
func IsValue(s *openapi3.Schema, v any) bool {
	return s.VisitJSON(v, openapi3.EnableJSONSchema2020()) == nil
}

// checkFormat reports a type and a format once, where they first stand.
func (l *linter) checkFormat(at *openapi3.Origin, path string, s *openapi3.Schema) {
	kind := ScalarOf(s)
	if _, exact := l.Formats[kind]; exact || l.formats[kind] {
		return
	}
	l.formats[kind] = kind.Format != ""
	if meant, typo := l.meant(kind); typo {
		l.report(at, path, "%s has no Go type, and is nearly %s; write that, or name it in %s if it is another", kind, meant, formatsName)
	}
}

// readText reports all $refs that lead nowhere or out of the document, with their lines, and wrong
// extensions. kin-openapi reports the first $ref only, and no line.
func (l *linter) readText() error {
	l.checkNode("", l.text.root, false)
	return l.readExtensions()
}

// checkNode checks a part of the document. names: its members have names that the document chooses.
func (l *linter) checkNode(path string, at *yaml.Node, names bool) {
	for i, value := range at.Content {
		name := strconv.Itoa(i)
		if at.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			name = at.Content[i-1].Value
		}
		switch {
		case strings.HasPrefix(name, "example") && !names:
		case misspelled.MatchString(name) && !names && !slices.Contains(extensionNames, name):
			l.problems = append(l.problems, problem{
				l.text.origin(value), strings.TrimPrefix(path+"."+name, "."),
				"it begins like one of gen's extensions, and is none; they are " + strings.Join(extensionNames, ", "),
			})
		case name == "$ref" && value.Kind == yaml.ScalarNode:
			if wrong := l.wrongReference(value.Value); wrong != "" {
				l.problems = append(l.problems, problem{l.text.origin(value), path, value.Value + " " + wrong})
			}
		case name == "properties":
			l.checkNode(path, value, true)
		default:
			l.checkNode(strings.TrimPrefix(path+"."+name, "."), value, slices.Contains(named, name) && !names)
		}
	}
}

var misspelled = regexp.MustCompile(`^x-(alias|entity|essential|event|personal|ping|test)`)

// wrongReference returns the fault of a $ref, or "".
func (l *linter) wrongReference(ref string) string {
	for range 10 { // enough, and no endless circle
		if !strings.HasPrefix(ref, "#/") {
			return "is outside of this file; move what it refers to into components, and refer to it there"
		}
		target := l.text.find(ref)
		if target == nil {
			return "leads nowhere; correct it, or add what it refers to"
		}
		next := element(target, "$ref")
		if next == nil || len(target.Content) > 2 {
			return ""
		}
		ref = next.Value
	}
	return "leads in a circle; refer to what is meant"
}

// unescaped decodes a name in a JSON pointer.
func unescaped(name string) string {
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
}
