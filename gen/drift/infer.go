package drift

import (
	"encoding/json"
	"go/token"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"gopkg.in/yaml.v3"

	"github.com/paghooks/paghooks/idem/drift"

	"github.com/paghooks/paghooks/gen/spec"
)

var (
	dayText  = regexp.MustCompile(`^(\d{4}-\d\d-\d\d|\d\d/\d\d/\d{4})$`)
	timeText = regexp.MustCompile(`^(\d{4}-\d\d-\d\d|\d\d/\d\d/\d{4})[ T]\d\d:\d\d`)
	moneyish = regexp.MustCompile(`(?i)(value|amount|price|fee|total|balance)`)
	partish  = regexp.MustCompile(`(?i)percent`)
)

// inference guesses schemas of values. New objects become components.
type inference struct {
	spec       *spec.Spec
	used       map[spec.Scalar]bool // the formats that the spec uses: only those are sure to exist in its package
	names      map[string]string    // taken in the package
	components []*yaml.Node         // of the new components: name, schema, name, schema
}

func newInference(s *spec.Spec) *inference {
	in := &inference{spec: s, used: make(map[spec.Scalar]bool), names: s.GoNames()}
	for _, ref := range s.Schemas() {
		for _, p := range ref.Value.Properties {
			in.use(p)
		}
	}
	return in
}

func (in *inference) use(ref *openapi3.SchemaRef) {
	if ref != nil && ref.Value != nil {
		in.used[spec.ScalarOf(ref.Value)] = true
		in.use(ref.Value.Items)
	}
}

// schema guesses the schema of a property from its values. It is
// nil where there is nothing to go by, or no Go type for it.
func (in *inference) schema(parent, name, path string, values []any) *yaml.Node {
	seen := slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == nil })
	nullable := len(seen) < len(values)
	kind := kindOf(seen)
	switch {
	case drift.Name(name) != name || !token.IsIdentifier(spec.GoName(name)):
		return nil
	case kind == "object":
		return in.reference(parent, name, path, seen, nullable)
	case kind == "array":
		return in.list(parent, name, path, seen, nullable)
	}
	s, ok := in.scalar(name, kind, seen)
	if !ok {
		return nil
	}
	return scalarNode(s, nullable)
}

// kindOf is the one type that all values have in a schema; "" if they differ.
func kindOf(values []any) string {
	kinds := make(map[string]bool)
	for _, v := range values {
		switch v.(type) {
		case map[string]any:
			kinds["object"] = true
		case []any:
			kinds["array"] = true
		case string:
			kinds["string"] = true
		case bool:
			kinds["boolean"] = true
		case json.Number:
			kinds["number"] = true
		default:
			kinds[""] = true
		}
	}
	if len(kinds) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(kinds))[0]
}

func (in *inference) scalar(name, kind string, values []any) (spec.Scalar, bool) {
	var choices []spec.Scalar
	switch kind {
	case "boolean":
		return spec.Scalar{Kind: "boolean"}, true
	case "string":
		choices = in.textScalars(values)
	case "number":
		choices = numberScalars(name, values)
	}
	i := slices.IndexFunc(choices, func(s spec.Scalar) bool { return in.used[s] })
	if i < 0 {
		return spec.Scalar{}, false
	}
	return choices[i], true
}

// textScalars lists the scalars of texts, the best guess first: a format of the spec
// with such a text as its example.
func (in *inference) textScalars(values []any) []spec.Scalar {
	all := func(form *regexp.Regexp) bool {
		return !slices.ContainsFunc(values, func(v any) bool { return !form.MatchString(v.(string)) })
	}
	for _, form := range []*regexp.Regexp{dayText, timeText} {
		if !all(form) {
			continue
		}
		var out []spec.Scalar
		for _, scalar := range in.spec.Scalars() {
			if example, _ := in.spec.Formats[scalar].Example.(string); form.MatchString(example) {
				out = append(out, scalar)
			}
		}
		return append(out, spec.Scalar{Kind: "string"})
	}
	return []spec.Scalar{{Kind: "string"}}
}

// numberScalars lists the scalars of numbers, the best guess first.
func numberScalars(name string, values []any) []spec.Scalar {
	var (
		money, decimal = spec.Scalar{Kind: "number", Format: "money"}, spec.Scalar{Kind: "number", Format: "decimal"}
		integer, cents = spec.Scalar{Kind: "integer"}, spec.Scalar{Kind: "integer", Format: "cents"}
		percent        = spec.Scalar{Kind: "number", Format: "percent"}
	)
	plain := !slices.ContainsFunc(values, func(v any) bool { return strings.ContainsAny(v.(json.Number).String(), ".eE") })
	switch isMoney := moneyish.MatchString(name); {
	case partish.MatchString(name):
		return []spec.Scalar{percent, decimal}
	case isMoney && plain:
		return []spec.Scalar{money, cents, integer, decimal}
	case isMoney:
		return []spec.Scalar{money, decimal}
	case plain:
		return []spec.Scalar{integer, decimal}
	}
	return []spec.Scalar{decimal}
}

func (in *inference) list(parent, name, path string, lists []any, nullable bool) *yaml.Node {
	var elements []any
	for _, l := range lists {
		elements = append(elements, l.([]any)...)
	}
	if slices.Contains(elements, nil) {
		return nil // it would become a zero value
	}
	items := in.schema(parent, name, path+"[]", elements)
	if items == nil {
		return nil
	}
	out := scalarNode(spec.Scalar{Kind: "array"}, nullable)
	put(out, "items", items)
	return out
}

// reference refers to a component that objects fit, or to a new one.
func (in *inference) reference(parent, name, path string, objects []any, nullable bool) *yaml.Node {
	component := in.fitting(name, objects)
	if component == "" {
		component = in.newComponent(parent, name, path, objects)
	}
	if component == "" {
		return nil
	}
	ref := mapping("$ref", text(spec.SchemaPrefix+component))
	if nullable {
		return mapping("oneOf", sequence(ref, mapping("type", text("null"))))
	}
	return ref
}

// fitting is the component of the spec that knows everything in objects: the one
// of their name, or else the only one that knows two or more fields.
func (in *inference) fitting(name string, objects []any) string {
	var fit []string
	for _, component := range spec.InOrder(in.spec.Schemas(), spec.SchemaOrigin) {
		s := in.spec.Schemas()[component].Value
		f := newFinder(in.spec)
		if spec.IsEvent(s) || spec.IsHandWritten(s) || component == spec.EnvelopeName || len(s.Properties) == 0 {
			continue
		}
		for _, object := range objects {
			f.object("", component, s, object.(map[string]any))
		}
		switch {
		case len(f.found) > 0:
		case component == spec.GoName(name):
			return component
		default:
			fit = append(fit, component)
		}
	}
	if len(fit) == 1 && len(fieldValues(objects)) > 1 {
		return fit[0]
	}
	return ""
}

// newComponent makes a component of objects, unless there is a new one already
// that has the same properties.
func (in *inference) newComponent(parent, name, path string, objects []any) string {
	component := in.claim(parent, name)
	if component == "" {
		return ""
	}
	at := len(in.components)
	in.components = append(in.components, text(component), nil) // before its own objects
	properties := in.properties(component, path, objects)
	if properties == nil {
		in.forget(at)
		return ""
	}
	for i := 0; i < at; i += 2 {
		if same := in.components[i]; same.Value == spec.GoName(name) && reflect.DeepEqual(child(in.components[i+1], "properties"), properties) {
			in.forget(at)
			return same.Value
		}
	}
	in.components[at+1] = mapping(
		"type", text("object"),
		"description", text("An object at "+path+", not described yet."),
		"properties", properties)
	return component
}

// forget takes the new components from a place on back.
func (in *inference) forget(from int) {
	for i := from; i < len(in.components); i += 2 {
		delete(in.names, in.components[i].Value)
	}
	in.components = in.components[:from]
}

// properties guesses the schemas of the fields of objects. Names that make no
// field are keys, and an object with keys is a map: nil.
func (in *inference) properties(component, path string, objects []any) *yaml.Node {
	values := fieldValues(objects)
	out := mapping()
	fields := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if drift.Name(name) != name || fields[spec.GoName(name)] {
			return nil
		}
		fields[spec.GoName(name)] = true
		if s := in.schema(component, name, drift.Join(path, name), values[name]); s != nil {
			put(out, name, s)
		}
	}
	if len(out.Content) == 0 {
		return nil
	}
	return out
}

func fieldValues(objects []any) map[string][]any {
	values := make(map[string][]any)
	for _, object := range objects {
		for name, v := range object.(map[string]any) {
			values[name] = append(values[name], v)
		}
	}
	return values
}

// claim takes a Go name for an object: that of its field or, if that is taken,
// with its parent's before it.
func (in *inference) claim(parent, name string) string {
	for _, candidate := range []string{spec.GoName(name), parent + spec.GoName(name)} {
		if _, taken := in.names[candidate]; !taken && spec.GoName(candidate) == candidate {
			in.names[candidate] = "a new schema"
			return candidate
		}
	}
	return ""
}
