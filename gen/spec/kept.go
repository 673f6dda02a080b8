package spec

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// checkKept walks over the document as it was written, beside the types that are made of it. Each
// property and each value of an enum must be in them, and each extension must have done something.
func (l *linter) checkKept() {
	k := &keeper{linter: l, seen: make(map[string]bool), used: make(map[string]bool), idle: make(map[string][]string)}
	for _, webhook := range slices.Sorted(maps.Keys(l.events)) {
		k.post = []string{"webhooks", webhook, "post"}
		var results []*openapi3.SchemaRef
		for _, event := range l.events[webhook] {
			results = append(results, BodySchema(l.Doc.Webhooks[event].Post))
		}
		for _, name := range extensionNames {
			k.used[pointer(append(k.post, name))] = true
		}
		k.walk(k.content(append(k.post, "requestBody")), results, l.events[webhook])
	}
	k.isCall = true
	for _, o := range operations(l.questions) {
		k.call([]string{"webhooks", o.Path, "post"}, o)
	}
	for _, o := range l.Operations() {
		k.call([]string{"paths", o.Path, strings.ToLower(o.Method)}, o)
	}
	k.used[pointer([]string{"components", "schemas", EventTypeName, goTypeName})] = true
	for _, at := range []string{"webhooks", "components"} {
		k.findIdle([]string{at}, k.at([]string{at}), false)
	}
	for _, name := range slices.Sorted(maps.Keys(k.idle)) {
		if !k.used[name] {
			k.lost(k.idle[name], "it does nothing here: write it at the body of an event, at the property that it is about, or at the webhook")
		}
	}
}

// keeper looks for what is lost.
type keeper struct {
	*linter
	post   []string            // the webhook
	isCall bool                // it is no event, or it is an operation of the API
	seen   map[string]bool     // places that were compared with a type
	used   map[string]bool     // places of extensions that did something
	idle   map[string][]string // and of those that did nothing in one of their places
}

// extensionNames are the extensions of schemas and webhooks.
var extensionNames = []string{
	EntityKeyName, eventIDName, eventTimeName, testName, pingName, isEventName, aliasesName, exampleName, essentialName, personalName,
	goTypeName, goNameName, EnumDocsName, layoutName,
}

const layoutName = "x-layout" // the one layout of a body that has a property

func pointer(at []string) string { return strings.Join(at, "\x00") }

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
	k.used[pointer(append(place, isEventName))] = true
	if body := BodySchema(o.Operation); body != nil {
		k.walk(k.content(append(place, "requestBody")), []*openapi3.SchemaRef{body}, nil)
	}
	for status, answer := range o.Responses.Map() {
		if schema := jsonOf(answer.Value.Content); schema != nil {
			k.walk(k.content(append(place, "responses", status)), []*openapi3.SchemaRef{schema}, nil)
		}
	}
}

// content returns the place of the schema of the JSON in a body.
func (k *keeper) content(body []string) []string {
	for {
		m, _ := k.at(body).(map[string]any)
		ref, ok := m["$ref"].(string)
		if !ok {
			break
		}
		body = placeOf(ref)
	}
	content, _ := k.at(append(body, "content")).(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if isJSON(name) {
			return append(slices.Clip(body), "content", name, "schema")
		}
	}
	return body
}

func placeOf(ref string) (place []string) {
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		place = append(place, unescaped(name))
	}
	return place
}

// walk compares a schema with the types that are made of it. events are set at the body of a webhook.
func (k *keeper) walk(place []string, results []*openapi3.SchemaRef, events []string) {
	m, ok := k.at(place).(map[string]any)
	keys := slices.Clone(place)
	isRaw := true
	for i, r := range results {
		results[i] = k.resolved(r)
		isRaw = isRaw && IsHandWritten(results[i].Value)
		keys = append(keys, fmt.Sprintf("%p", results[i].Value))
	}
	key := pointer(keys)
	if !ok || k.seen[key] {
		return
	}
	k.seen[key] = true
	down := func(results []*openapi3.SchemaRef, events []string, names ...string) {
		k.walk(append(slices.Clone(place), names...), slices.Clone(results), events)
	}
	if ref, ok := m["$ref"].(string); ok {
		k.walk(placeOf(ref), slices.Clone(results), events)
	}
	for _, name := range extensionNames {
		k.extension(append(slices.Clone(place), name), results, events)
	}
	for _, several := range []string{"allOf", "oneOf", "anyOf"} {
		list, _ := m[several].([]any)
		for i := range list {
			down(results, events, several, strconv.Itoa(i))
		}
	}
	down(results, events, "then")
	down(results, events, "else")
	dependent, _ := m["dependentSchemas"].(map[string]any)
	for name := range dependent {
		down(results, events, "dependentSchemas", name)
	}
	if discriminator, ok := m["discriminator"].(map[string]any); ok && m["oneOf"] == nil && m["anyOf"] == nil {
		mapping, _ := discriminator["mapping"].(map[string]any)
		for _, ref := range mapping {
			k.walk(placeOf(fmt.Sprint(ref)), slices.Clone(results), events)
		}
	}
	properties, _ := m["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		switch found := propertiesOf(k.Spec, results, name); {
		case events != nil && name == k.TypeField():
			k.names(append(slices.Clone(place), "properties", name))
		case isRaw:
			down(results, nil, "properties", name)
		case len(found) == 0:
			k.lost(append(slices.Clone(place), "properties", name), "no Go type has it")
		default:
			down(found, nil, "properties", name)
		}
	}
	if isRaw {
		down(results, nil, "additionalProperties")
		down(results, nil, "items")
		return
	}
	var items []*openapi3.SchemaRef
	for _, r := range results {
		if r.Value.Items != nil {
			items = append(items, r.Value.Items)
		}
	}
	if _, ok := m["items"]; ok {
		down(items, nil, "items")
	}
	k.values(place, m, results)
}

// resolved returns a schema without null, and of a component the component.
func (k *keeper) resolved(r *openapi3.SchemaRef) *openapi3.SchemaRef {
	plain, _ := WithoutNull(r)
	return &openapi3.SchemaRef{Ref: plain.Ref, Value: k.Resolved(plain), Extensions: merged(r.Extensions, plain.Extensions)}
}

func propertiesOf(s *Spec, results []*openapi3.SchemaRef, name string) (found []*openapi3.SchemaRef) {
	for _, r := range results {
		if p, _ := s.Property(r.Value, name); p != nil {
			found = append(found, p)
		}
	}
	return found
}

// values compares the texts of an enum.
func (k *keeper) values(place []string, m map[string]any, results []*openapi3.SchemaRef) {
	values, _ := m["enum"].([]any)
	if text, ok := m["const"].(string); ok {
		values = []any{text}
	}
	for _, value := range values {
		if _, ok := value.(string); ok && !slices.ContainsFunc(results, func(r *openapi3.SchemaRef) bool { return slices.Contains(r.Value.Enum, value) }) {
			k.lost(place, fmt.Sprintf("no Go type has its value %s", value))
			return
		}
	}
}

// names compares the texts that name an event.
func (k *keeper) names(place []string) {
	m, _ := k.at(place).(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		k.names(placeOf(ref))
	}
	for _, several := range []string{"allOf", "oneOf", "anyOf"} {
		list, _ := m[several].([]any)
		for i := range list {
			k.names(append(slices.Clone(place), several, strconv.Itoa(i)))
		}
	}
	values, _ := m["enum"].([]any)
	for _, value := range append(values, m["const"]) {
		if name, ok := value.(string); ok && k.aliases[name] == "" {
			k.lost(place, "no event has the name "+name)
		}
	}
}

// extension notes whether an extension did something.
func (k *keeper) extension(place []string, results []*openapi3.SchemaRef, events []string) {
	name := place[len(place)-1]
	value := k.at(place)
	all := func(does func(r *openapi3.SchemaRef) bool) bool {
		return !slices.ContainsFunc(results, func(r *openapi3.SchemaRef) bool { return !does(r) })
	}
	does := false
	switch name {
	case personalName:
		does = value != true || len(results) > 0 && all(func(r *openapi3.SchemaRef) bool { return IsPersonal(r) || IsFree(r.Value) })
		if value == true && !does {
			k.lost(place, "it would be printed: write it at the text itself")
		}
	case EntityKeyName, eventIDName, eventTimeName, testName:
		own := k.at(append(slices.Clone(k.post), name))
		does = slices.ContainsFunc(events, func(event string) bool {
			return own != nil || reflect.DeepEqual(k.Doc.Webhooks[event].Post.Extensions[name], value)
		})
	case essentialName:
		paths, _ := value.([]any)
		does = (events != nil || k.isCall) && slices.ContainsFunc(results, func(r *openapi3.SchemaRef) bool {
			all, _ := r.Value.Extensions[name].([]any)
			return !slices.ContainsFunc(paths, func(path any) bool {
				return !slices.ContainsFunc(all, func(other any) bool { return reflect.DeepEqual(path, other) })
			})
		})
	case goNameName:
		does = all(func(r *openapi3.SchemaRef) bool { return FieldName(r) == value || SchemaName(r.Ref) == value })
	case goTypeName, EnumDocsName, layoutName:
		does = all(func(r *openapi3.SchemaRef) bool { return r.Value.Extensions[name] != nil || r.Extensions[name] != nil })
	}
	if value != nil && !does {
		k.idle[pointer(place)] = place
	}
	k.used[pointer(place)] = k.used[pointer(place)] || does
}

// findIdle adds the extensions that the walk did not come by, such as those in additionalProperties.
func (k *keeper) findIdle(place []string, v any, names bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			at := append(slices.Clone(place), name)
			switch {
			case names:
				k.findIdle(at, inner, false)
			case slices.Contains(extensionNames, name):
				k.idle[pointer(at)] = at
			case strings.HasPrefix(name, "x-"), strings.HasPrefix(name, "example"), name == "default", name == "enum", name == "const":
			case place[0] == "components" && len(place) == 2 && !k.wasSeen(at):
			default:
				k.findIdle(at, inner, slices.Contains(named, name))
			}
		}
	case []any:
		for i, inner := range v {
			k.findIdle(append(slices.Clone(place), strconv.Itoa(i)), inner, false)
		}
	}
}

// wasSeen reports whether the walk came by a component. Others have no type.
func (k *keeper) wasSeen(place []string) bool {
	for key := range k.seen {
		if strings.HasPrefix(key, pointer(place)+"\x00") {
			return true
		}
	}
	return false
}

// lost refuses what would be lost, and says how to let it go.
func (k *keeper) lost(place []string, text string) {
	var target strings.Builder
	target.WriteString("$")
	for _, name := range place {
		if plainName.MatchString(name) {
			target.WriteString("." + name)
		} else {
			target.WriteString("['" + name + "']")
		}
	}
	k.reportAt(place, fmt.Sprintf(`%s; or let it go with this line in an overlay: {target: "%s", remove: true}`, text, target.String()))
}

var plainName = regexp.MustCompile(`^[A-Za-z_]\w*$`)
