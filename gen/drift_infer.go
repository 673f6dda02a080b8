package main

import (
	"encoding/json"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"gopkg.in/yaml.v3"

	"github.com/paghooks/paghooks/idem/drift"
)

var (
	dayText  = regexp.MustCompile(`^(\d{4}-\d\d-\d\d|\d\d/\d\d/\d{4})$`)
	timeText = regexp.MustCompile(`^(\d{4}-\d\d-\d\d|\d\d/\d\d/\d{4})[ T]\d\d:\d\d`)
	moneyish = regexp.MustCompile(`(?i)(value|amount|price|fee|total|balance)`)
)

// inference guesses schemas of values. New objects become components.
type inference struct {
	used       map[scalar]bool   // what the spec uses: only those are sure to exist in its package
	names      map[string]string // taken in the package
	components []*yaml.Node      // of the new components: name, schema, name, schema
}

func (s *spec) newInference() *inference {
	in := &inference{used: make(map[scalar]bool), names: s.goNames()}
	for _, ref := range s.schemas() {
		for _, p := range ref.Value.Properties {
			in.use(p)
		}
	}
	return in
}

func (in *inference) use(ref *openapi3.SchemaRef) {
	if ref != nil && ref.Value != nil {
		in.used[scalar{typeOf(ref.Value), ref.Value.Format}] = true
		in.use(ref.Value.Items)
	}
}

// goNames are the names that the spec's package has already.
func (s *spec) goNames() map[string]string {
	l := &linter{spec: s, names: reserved(), keys: make(map[string]string)}
	l.checkSchemas()
	l.checkWebhooks()
	return l.names
}

// schema guesses the schema of a property from what it was seen to hold. It is
// nil where there is nothing to go by, or no Go type for it.
func (in *inference) schema(parent, name, path string, values []any) *yaml.Node {
	seen := slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == nil })
	nullable := len(seen) < len(values)
	kind := kindOf(seen)
	switch {
	case drift.Name(name) != name || !token.IsIdentifier(goName(name)):
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
	return s.schema(nullable)
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

func (in *inference) scalar(name, kind string, values []any) (scalar, bool) {
	var choices []scalar
	switch kind {
	case "boolean":
		return scalar{"boolean", ""}, true
	case "string":
		choices = textScalars(values)
	case "number":
		choices = numberScalars(name, values)
	}
	i := slices.IndexFunc(choices, func(s scalar) bool { return in.used[s] })
	if i < 0 {
		return scalar{}, false
	}
	return choices[i], true
}

// textScalars lists what texts may be, the best guess first.
func textScalars(values []any) []scalar {
	all := func(form *regexp.Regexp) bool {
		return !slices.ContainsFunc(values, func(v any) bool { return !form.MatchString(v.(string)) })
	}
	switch {
	case all(dayText):
		return []scalar{{"string", "asaas-date"}, {"string", ""}}
	case all(timeText):
		return []scalar{{"string", "asaas-datetime"}, {"string", "zelta-time"}, {"string", ""}}
	}
	return []scalar{{"string", ""}}
}

// numberScalars lists what numbers may be, the best guess first.
func numberScalars(name string, values []any) []scalar {
	var (
		money, decimal = scalar{"number", "money"}, scalar{"number", "decimal"}
		integer, cents = scalar{"integer", ""}, scalar{"integer", "cents"}
	)
	plain := !slices.ContainsFunc(values, func(v any) bool { return strings.ContainsAny(v.(json.Number).String(), ".eE") })
	switch isMoney := moneyish.MatchString(name); {
	case isMoney && plain:
		return []scalar{money, cents, integer, decimal}
	case isMoney:
		return []scalar{money, decimal}
	case plain:
		return []scalar{integer, decimal}
	}
	return []scalar{decimal}
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
	out := scalar{"array", ""}.schema(nullable)
	put(out, "items", items)
	return out
}

// reference makes a component of objects, and refers to it.
func (in *inference) reference(parent, name, path string, objects []any, nullable bool) *yaml.Node {
	component := in.claim(parent, name)
	if component == "" {
		return nil
	}
	at := len(in.components)
	in.components = append(in.components, text(component), nil) // before its own objects
	properties := in.properties(component, path, objects)
	if properties == nil {
		in.components = in.components[:at]
		delete(in.names, component)
		return nil
	}
	in.components[at+1] = mapping(
		"type", text("object"),
		"description", text("An object at "+path+", not described yet."),
		"properties", properties)
	ref := mapping("$ref", text(schemaPrefix+component))
	if nullable {
		return mapping("oneOf", sequence(ref, mapping("type", text("null"))))
	}
	return ref
}

// properties guesses the schemas of the fields of objects. Names that make no
// field are keys, and what has keys is a map: nil.
func (in *inference) properties(component, path string, objects []any) *yaml.Node {
	values := fieldValues(objects)
	out := mapping()
	fields := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if drift.Name(name) != name || fields[goName(name)] {
			return nil
		}
		fields[goName(name)] = true
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
	for _, candidate := range []string{goName(name), parent + goName(name)} {
		if _, taken := in.names[candidate]; !taken && goName(candidate) == candidate {
			in.names[candidate] = "a new schema"
			return candidate
		}
	}
	return ""
}
