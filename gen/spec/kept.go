package spec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// checkKept walks over the document as it was written, beside the types that are made of it. Each
// property and each value of an enum must be in them, and each extension must have done something.
func (l *linter) checkKept() {
	k := &keeper{linter: l, seen: make(map[string]bool), used: make(map[string]bool), gone: make(map[string]bool)}
	for webhook, events := range l.events {
		k.post = []string{"webhooks", webhook, "post"}
		var results []*openapi3.SchemaRef
		for _, event := range events {
			results = append(results, BodySchema(l.Doc.Webhooks[event].Post))
		}
		for _, name := range extensionNames {
			k.use(k.post, name)
		}
		k.walk(k.content(below(k.post, "requestBody")), results, events)
	}
	k.isCall = true
	for _, o := range operations(l.questions) {
		k.call([]string{"webhooks", o.Path, "post"}, o)
	}
	for _, o := range l.Operations() {
		k.call([]string{"paths", o.Path, strings.ToLower(o.Method)}, o)
	}
	k.use([]string{"components", "schemas", EventTypeName}, goTypeName)
	for _, name := range []string{"webhooks", "components"} {
		k.findIdle([]string{name}, k.at([]string{name}), name == "webhooks")
	}
}

// keeper looks for what is lost.
type keeper struct {
	*linter
	post   []string        // the webhook
	isCall bool            // it is no event, or it is an operation of the API
	seen   map[string]bool // places that were compared with a type
	used   map[string]bool // places of extensions that did something
	gone   map[string]bool // places of schemas that no type has
}

// extensionNames are the extensions of schemas and webhooks.
var extensionNames = []string{
	EntityKeyName, eventIDName, eventTimeName, testName, pingName, isEventName, aliasesName, exampleName, essentialName, personalName,
	goTypeName, goNameName, EnumDocsName, LayoutName,
}

func pointer(place []string) string { return strings.Join(place, "\x00") }

func below(place []string, names ...string) []string { return slices.Concat(place, names) }

func placeOf(ref string) (place []string) {
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		place = append(place, unescaped(name))
	}
	return place
}

func (k *keeper) use(place []string, extension string) {
	k.used[pointer(below(place, extension))] = true
}

// at returns what the document has at a place; nil if it is nothing.
func (k *keeper) at(place []string) (v any) {
	v = k.text.said
	for _, name := range place {
		switch of := v.(type) {
		case map[string]any:
			v = of[name]
		case []any:
			i, _ := strconv.Atoi(name)
			v = of[i]
		default:
			return nil
		}
	}
	return v
}

// call walks over the JSON that an operation takes and answers.
func (k *keeper) call(place []string, o Operation) {
	k.use(place, isEventName)
	if body := BodySchema(o.Operation); body != nil {
		k.walk(k.content(below(place, "requestBody")), []*openapi3.SchemaRef{body}, nil)
	}
	for status, answer := range o.Responses.Map() {
		if schema := jsonOf(answer.Value.Content); schema != nil {
			k.walk(k.content(below(place, "responses", status)), []*openapi3.SchemaRef{schema}, nil)
		}
	}
}

// content returns the place of the schema of the JSON in a body.
func (k *keeper) content(body []string) []string {
	m, _ := k.at(body).(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return k.content(placeOf(ref))
	}
	content, _ := m["content"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if isJSON(name) {
			return below(body, "content", name, "schema")
		}
	}
	return body
}

// walk compares a schema with the types that are made of it. events are set at the body of a webhook.
func (k *keeper) walk(place []string, types []*openapi3.SchemaRef, events []string) {
	m, ok := k.at(place).(map[string]any)
	key, isRaw := pointer(place), true
	var results []*openapi3.SchemaRef
	for _, t := range types {
		plain, _ := WithoutNull(t)
		r := &openapi3.SchemaRef{Ref: plain.Ref, Value: k.Resolved(plain), Extensions: merged(t.Extensions, plain.Extensions)}
		results = append(results, r)
		isRaw = isRaw && IsHandWritten(r.Value)
		key += fmt.Sprintf(" %p", r.Value)
	}
	if !ok || k.seen[key] {
		return
	}
	k.seen[key] = true
	k.extensions(place, m, results, events)
	for _, part := range k.parts(place, m) {
		k.walk(part, results, events)
	}
	properties, _ := m["properties"].(map[string]any)
	for name := range properties {
		property := below(place, "properties", name)
		switch found := k.propertiesOf(results, name); {
		case events != nil && name == k.TypeField():
			k.names(property)
		case isRaw:
			k.walk(property, results, nil)
		case len(found) == 0:
			k.lost(property, "no Go type has it")
		default:
			k.walk(property, found, nil)
		}
	}
	items := results
	if !isRaw {
		items = nil
		for _, r := range results {
			if r.Value.Items != nil {
				items = append(items, r.Value.Items)
			}
		}
		k.values(place, m, results)
	}
	k.walk(below(place, "items"), items, nil)
	for _, others := range k.others(place, m) {
		if isRaw {
			k.walk(others, results, nil)
			continue
		}
		k.gone[pointer(others)] = true
		k.lost(others, "no Go type has members without a property: x-go-type: json.RawMessage at the object keeps all of it as JSON")
	}
}

// others returns the places of the schemas of members that are not among an object's properties. An empty schema, as
// true, says no more than the absence of one.
func (k *keeper) others(place []string, m map[string]any) (places [][]string) {
	for _, name := range []string{"additionalProperties", "unevaluatedProperties"} {
		if schema, _ := m[name].(map[string]any); len(schema) > 0 {
			places = append(places, below(place, name))
		}
	}
	patterns, _ := m["patternProperties"].(map[string]any)
	for pattern := range patterns {
		places = append(places, below(place, "patternProperties", pattern))
	}
	return places
}

// parts returns the places of the schemas that say more about a schema's value.
func (k *keeper) parts(place []string, m map[string]any) (parts [][]string) {
	if ref, ok := m["$ref"].(string); ok {
		parts = append(parts, placeOf(ref))
	}
	for _, several := range []string{"allOf", "oneOf", "anyOf"} {
		list, _ := m[several].([]any)
		for i := range list {
			parts = append(parts, below(place, several, strconv.Itoa(i)))
		}
	}
	for _, name := range []string{"then", "else"} {
		if m[name] != nil {
			parts = append(parts, below(place, name))
		}
	}
	dependent, _ := m["dependentSchemas"].(map[string]any)
	for name := range dependent {
		parts = append(parts, below(place, "dependentSchemas", name))
	}
	discriminator, _ := m["discriminator"].(map[string]any)
	mapping, _ := discriminator["mapping"].(map[string]any)
	for _, ref := range mapping {
		if m["oneOf"] == nil && m["anyOf"] == nil {
			parts = append(parts, placeOf(fmt.Sprint(ref)))
		}
	}
	return parts
}

func (k *keeper) propertiesOf(results []*openapi3.SchemaRef, name string) (found []*openapi3.SchemaRef) {
	for _, r := range results {
		if p, _ := k.Property(r.Value, name); p != nil {
			found = append(found, p)
		}
	}
	return found
}

// values compares the texts of an enum.
func (k *keeper) values(place []string, m map[string]any, results []*openapi3.SchemaRef) {
	for _, text := range textsOf(m) {
		if !slices.ContainsFunc(results, func(r *openapi3.SchemaRef) bool { return slices.Contains(r.Value.Enum, any(text)) }) {
			k.lost(place, "no Go type has its value "+text)
			return
		}
	}
}

// names compares the texts that name an event.
func (k *keeper) names(place []string) {
	m, ok := k.at(place).(map[string]any)
	if !ok || k.seen[pointer(place)] {
		return
	}
	k.seen[pointer(place)] = true
	for _, part := range k.parts(place, m) {
		k.names(part)
	}
	for _, name := range textsOf(m) {
		if k.aliases[name] == "" {
			k.lost(place, "no event has the name "+name)
		}
	}
}

// textsOf returns the texts of which a value is one.
func textsOf(m map[string]any) (texts []string) {
	values, _ := m["enum"].([]any)
	for _, value := range append(slices.Clip(values), m["const"]) {
		if text, ok := value.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// extensions notes which extensions of a schema did something.
func (k *keeper) extensions(place []string, m map[string]any, results []*openapi3.SchemaRef, events []string) {
	all := func(does func(r *openapi3.SchemaRef) bool) bool {
		return !slices.ContainsFunc(results, func(r *openapi3.SchemaRef) bool { return !does(r) })
	}
	for _, name := range extensionNames {
		value, does := m[name], false
		switch {
		case value == nil:
			continue
		case name == personalName:
			if value == true && (len(results) == 0 || !all(func(r *openapi3.SchemaRef) bool { return IsPersonal(r) || IsFree(r.Value) })) {
				k.lost(below(place, name), "it would be printed: write it at the text itself")
			}
			does = true
		case slices.Contains(sharedNames, name):
			own := k.at(below(k.post, name))
			does = slices.ContainsFunc(events, func(event string) bool {
				return own != nil || reflect.DeepEqual(k.Doc.Webhooks[event].Post.Extensions[name], value)
			})
		case name == essentialName:
			does = (events != nil || k.isCall) && slices.ContainsFunc(results, func(r *openapi3.SchemaRef) bool {
				return hasAll(r.Value.Extensions[name], value)
			})
		case name == goNameName:
			does = all(func(r *openapi3.SchemaRef) bool { return FieldName(r) == value || SchemaName(r.Ref) == value })
		default:
			does = all(func(r *openapi3.SchemaRef) bool { return r.Value.Extensions[name] != nil || r.Extensions[name] != nil })
		}
		if does {
			k.use(place, name)
		}
	}
}

func hasAll(list, wanted any) bool {
	all, _ := list.([]any)
	some, _ := wanted.([]any)
	return !slices.ContainsFunc(some, func(one any) bool {
		return !slices.ContainsFunc(all, func(other any) bool { return reflect.DeepEqual(one, other) })
	})
}

// findIdle reports the extensions that did nothing, also those that the walk did not come by, such as in
// additionalProperties. names: the members have names that the document chooses.
func (k *keeper) findIdle(place []string, v any, names bool) {
	list, _ := v.([]any)
	for i, inner := range list {
		k.findIdle(below(place, strconv.Itoa(i)), inner, false)
	}
	members, _ := v.(map[string]any)
	for name, inner := range members {
		at := below(place, name)
		switch {
		case k.gone[pointer(at)]:
		case names:
			k.findIdle(at, inner, false)
		case slices.Contains(extensionNames, name):
			if !k.used[pointer(at)] {
				k.lost(at, "it does nothing here: write it at the body of an event, at the property that it is about, or at the webhook")
			}
		case strings.HasPrefix(name, "x-"), strings.HasPrefix(name, "example"), name == "default", name == "enum", name == "const":
		default:
			k.findIdle(at, inner, slices.Contains(named, name))
		}
	}
}

// lost refuses what would be lost, and says how to let it go.
func (k *keeper) lost(place []string, text string) {
	var target strings.Builder
	for i, name := range place {
		if _, isList := k.at(place[:i]).([]any); !isList {
			name = "'" + name + "'"
		}
		fmt.Fprintf(&target, "[%s]", name)
	}
	k.reportAt(place, fmt.Sprintf(`%s; or let it go with this line in an overlay: {target: "$%s", remove: true}`, text, &target))
}
