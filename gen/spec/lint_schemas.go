package spec

import (
	"go/token"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"gopkg.in/yaml.v3"
)

const inlineObject = "an object is defined inline, and has no name in Go; move it to components.schemas and refer to it"

func keysOf[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

func (l *linter) checkSchemas() {
	schemas := l.Schemas()
	for _, name := range InOrder(schemas, SchemaOrigin) {
		l.checkComponent("components.schemas."+name, name, schemas[name])
	}
}

// checkComponent checks a schema that becomes a Go type.
func (l *linter) checkComponent(path, name string, ref *openapi3.SchemaRef) {
	at, s := SchemaOrigin(ref), ref.Value
	if GoName(name) != name {
		l.report(at, path, "the name is used in Go as it is; write it %s", GoName(name))
	}
	l.claim(at, path, GoName(name))
	l.checkSentence(at, path+".description", s.Description)
	switch {
	case IsHandWritten(s):
		l.checkHandWritten(at, path, name, s)
	case len(UnionOf(s)) > 0:
		l.report(at, path, "it is a union, and Go has none; make one object that has the fields of all")
	case len(s.Enum) > 0:
		l.checkEnum(at, path, name, s)
	case IsEvent(s) || TypeOf(s) == "object":
		l.checkObject(at, path, s)
	default:
		l.report(at, path, "it is neither an object nor an enum; write its type where it is used")
	}
}

func (l *linter) checkHandWritten(at *openapi3.Origin, path, name string, s *openapi3.Schema) {
	if s.Extensions[goTypeName] != name {
		l.report(at, path, "%s names another type; write %s there, or rename the schema", goTypeName, name)
	}
}

func (l *linter) checkEnum(at *openapi3.Origin, path, name string, s *openapi3.Schema) {
	if TypeOf(s) != "string" {
		l.report(at, path, "the values of an enum are strings; write type: string")
		return
	}
	for _, v := range s.Enum {
		value, ok := v.(string)
		if !ok || GoName(value) == "" {
			l.report(at, path+".enum", "the value %v makes no Go name; write a string that has letters", v)
			continue
		}
		l.claim(at, path+".enum."+value, name+GoName(value))
	}
	docs, _ := s.Extensions[EnumDocsName].(map[string]any)
	for _, value := range slices.Sorted(keysOf(docs)) {
		if !slices.Contains(s.Enum, any(value)) {
			l.report(at, path+"."+EnumDocsName, "%s is not a value of the enum; correct it", value)
		}
	}
	for _, value := range StringsOf(s.Extensions[UndocumentedName]) {
		if !slices.Contains(s.Enum, any(value)) {
			l.report(at, path+"."+UndocumentedName, "%s is not a value of the enum; correct it", value)
		}
	}
}

func (l *linter) checkObject(at *openapi3.Origin, path string, s *openapi3.Schema) {
	if len(s.AllOf) > 1 || len(s.AllOf) == 1 && !IsEvent(s) {
		l.report(at, path+".allOf", "only events have one, of the %s alone; write the properties here", EnvelopeName)
	}
	if s.AdditionalProperties.Schema != nil || s.AdditionalProperties.Has != nil && *s.AdditionalProperties.Has {
		l.warn(at, path+".additionalProperties", "unknown fields are ignored, whatever it says; remove it, or make the object one without properties, whose JSON is kept")
	}
	for _, name := range s.Required {
		if s.Properties[name] == nil {
			l.report(at, path+".required", "there is no property %q; correct it", name)
		}
	}
	l.checkEssentials(at, path, s)
	fields := l.envelopeFields(s)
	for _, name := range InOrder(s.Properties, SchemaOrigin) {
		ref := s.Properties[name]
		if other, ok := fields[GoName(name)]; ok {
			l.report(SchemaOrigin(ref), path+"."+name, "its Go name %s is that of %s too; rename one of them", GoName(name), other)
		}
		fields[GoName(name)] = name
		if !token.IsIdentifier(GoName(name)) {
			l.report(SchemaOrigin(ref), path+"."+name, "the name makes no Go name; start it with a letter")
		}
		l.checkProperty(path+"."+name, ref)
		if IsPersonal(ref) && path == "components.schemas."+EnvelopeName {
			l.report(SchemaOrigin(ref), path+"."+name, "the envelope is printed, and nothing in it may be personal; move the property to the events")
		}
	}
}

// envelopeFields are the Go names that an event has from its envelope.
func (l *linter) envelopeFields(s *openapi3.Schema) map[string]string {
	fields := make(map[string]string)
	if !IsEvent(s) {
		return fields
	}
	fields[EnvelopeName] = "the envelope"
	for name := range l.Schemas()[EnvelopeName].Value.Properties {
		fields[GoName(name)] = EnvelopeName + "." + name
	}
	return fields
}

// checkProperty checks the schema that becomes the type of a field.
func (l *linter) checkProperty(path string, ref *openapi3.SchemaRef) {
	at := SchemaOrigin(ref)
	plain, _ := WithoutNull(ref)
	if mark := personalMark(ref); mark != nil && (TypeOf(plain.Value) != "string" || IsHandWritten(plain.Value) || len(plain.Value.Enum) > 0) {
		l.report(at, path, "%s is true, and marks a text; write it at the texts that are personal", personalName)
	}
	if IsHandWritten(plain.Value) {
		return // or JSON that is kept as it was sent
	}
	l.checkType(at, path, plain)
	if v := ref.Value.Example; v != nil && !isValue(plain.Value, v) {
		l.report(at, path, "its example, %v, is not a value of its; correct it", v)
	}
}

func isValue(s *openapi3.Schema, v any) bool {
	return s.VisitJSON(v, openapi3.EnableJSONSchema2020()) == nil
}

func (l *linter) checkType(at *openapi3.Origin, path string, ref *openapi3.SchemaRef) {
	s := ref.Value
	kind := ScalarOf(s)
	switch {
	case strings.Contains(SchemaName(ref.Ref), "/"):
		l.report(at, path, "%s is not a schema of its own; move it to components.schemas and refer to it", ref.Ref)
	case ref.Ref != "", IsHandWritten(s):
		return
	case kind.Kind == "array":
		l.checkItems(at, path+".items", s.Items)
	default:
		l.checkFormat(at, path, s)
	}
}

// checkFormat reports a type and a format once, where they first stand.
func (l *linter) checkFormat(at *openapi3.Origin, path string, s *openapi3.Schema) {
	kind := ScalarOf(s)
	f, ok := l.FormatOf(s)
	if _, exact := l.Formats[kind]; exact || l.formats[kind] {
		return
	}
	l.formats[kind] = kind.Format != ""
	if meant, typo := l.meant(kind); typo {
		l.report(at, path, "%s has no Go type, and is nearly %s; write that, or name it in %s if it is another", kind, meant, formatsName)
	} else if ok {
		l.warn(at, path, "%s has no Go type of its own, and becomes a %s everywhere; use one of %s, or name one in %s",
			kind, f.Go, strings.Join(l.scalars(), ", "), formatsName)
	} else {
		l.report(at, path, "%s has no Go type; use one of %s, or name one in %s", kind, strings.Join(l.scalars(), ", "), formatsName)
	}
}

func (l *linter) checkItems(at *openapi3.Origin, path string, items *openapi3.SchemaRef) {
	if items == nil {
		l.report(at, path, "an array of what? write the items")
		return
	}
	plain, nullable := WithoutNull(items)
	if nullable {
		l.report(at, path, "null in an array would become a zero value; leave null out")
	}
	l.checkType(at, path, plain)
}

func (s *Spec) scalars() []string {
	var out []string
	for s := range maps.Keys(s.Formats) {
		out = append(out, s.String())
	}
	slices.Sort(out)
	return out
}

// checkText reports all $refs that lead nowhere or out of the document, with their lines, and wrong
// extensions. kin-openapi reports the first $ref only, and no line.
func (l *linter) checkText() error {
	var root yaml.Node
	if yaml.Unmarshal(l.Data, &root) != nil || len(root.Content) == 0 {
		return nil // kin-openapi has a better error for it
	}
	l.checkReference("", root.Content[0], root.Content[0])
	if err := l.err(); err != nil {
		return err
	}
	return l.checkExtensions(root.Content[0])
}

func (l *linter) checkReference(path string, at, root *yaml.Node) {
	for i, value := range at.Content {
		name := strconv.Itoa(i)
		if at.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			name = at.Content[i-1].Value
		}
		switch {
		case name == "$ref" && value.Kind == yaml.ScalarNode:
			if wrong := wrongReference(value.Value, root); wrong != "" {
				l.problems = append(l.problems, problem{l.Name, value.Line, path, value.Value + " " + wrong})
			}
		case name == "properties":
			l.checkReference(path, value, root)
		default:
			l.checkReference(strings.TrimPrefix(path+"."+name, "."), value, root)
		}
	}
}

// wrongReference returns the fault of a $ref, or "".
func wrongReference(ref string, root *yaml.Node) string {
	for range 10 { // enough, and no endless circle
		if !strings.HasPrefix(ref, "#/") {
			return "is outside of this file; move what it refers to into components, and refer to it there"
		}
		target := root
		for name := range strings.SplitSeq(ref[len("#/"):], "/") {
			if target = element(target, unescaped(name)); target == nil {
				return "leads nowhere; correct it, or add what it refers to"
			}
		}
		next := element(target, "$ref")
		if next == nil {
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

// element returns the node under a name or, if it is a list, an index.
func element(n *yaml.Node, name string) *yaml.Node {
	if n.Kind == yaml.SequenceNode {
		if i, err := strconv.Atoi(name); err == nil && 0 <= i && i < len(n.Content) {
			return n.Content[i]
		}
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}
