package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// text is a document as it was written, with its overlays. Nodes know their lines.
type text struct {
	file  string
	root  *yaml.Node            // without the parts that no webhook needs
	added map[*yaml.Node]string // the overlay that a node is of
	said  map[string]any        // the same document
	lines map[int]origin        // of the lines that kin-openapi reads
}

// origin is a place in a file; line is 0 in an overlay.
type origin struct {
	file string
	line int
}

func newText(file string, document *yaml.Node, added map[*yaml.Node]string) (*text, error) {
	t := &text{file: file, root: &yaml.Node{Kind: yaml.MappingNode}, added: added}
	if len(document.Content) > 0 {
		t.root = document.Content[0]
	}
	keysAreText(t.root)
	err := t.root.Decode(&t.said) // a key that stands twice is a mistake even where no webhook needs it
	if t.prune(); err == nil {
		err = t.root.Decode(&t.said)
	}
	if err != nil {
		return nil, fmt.Errorf("gen: %s is not a readable OpenAPI document, correct it: %w", file, err)
	}
	return t, nil
}

// keysAreText makes texts of keys that YAML reads as something else, such as 200 and on.
func keysAreText(n *yaml.Node) {
	for i, inner := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && inner.Kind == yaml.ScalarNode && inner.Tag != "!!merge" {
			inner.Tag = "!!str"
		}
		keysAreText(inner)
	}
}

// prune removes what webhooks do not need: the words about the document and its servers, the paths, unless the
// package has a client, and the components to which nothing refers. They may have any mistake.
func (t *text) prune() {
	remove(t.root, func(name string) bool { return name == "tags" || name == "servers" || name == "externalDocs" })
	if info := element(t.root, "info"); info != nil && info.Kind == yaml.MappingNode {
		remove(info, func(name string) bool { return name != "title" && name != "version" })
	}
	if element(t.root, "webhooks") == nil {
		for _, key := range t.root.Content {
			if key.Value == "x-webhooks" { // of OpenAPI 3.0, which has no others
				key.Value = "webhooks"
			}
		}
	}
	webhooks, components := element(t.root, "webhooks"), element(t.root, "components")
	if webhooks != nil {
		for i, item := range webhooks.Content {
			if ref := element(item, "$ref"); ref != nil && t.find(ref.Value) != nil {
				webhooks.Content[i] = t.find(ref.Value) // in components.pathItems, which kin-openapi does not know
			}
		}
	}
	if element(element(element(t.root, providerName), "reserved"), "Client") == nil {
		remove(t.root, func(name string) bool { return name == "paths" })
	}
	if components == nil {
		return
	}
	used := make(map[string]bool)
	t.use(webhooks, used)
	t.use(element(t.root, "paths"), used)
	for _, name := range []string{EnvelopeName, EventTypeName} {
		t.use(&yaml.Node{Kind: yaml.ScalarNode, Value: SchemaPrefix + name}, used)
	}
	remove(components, func(name string) bool { return name == "pathItems" })
	for i := 0; i+1 < len(components.Content); i += 2 {
		kind := components.Content[i].Value
		remove(components.Content[i+1], func(name string) bool { return kind != "securitySchemes" && !used[componentsPrefix+kind+"/"+name] })
	}
}

const componentsPrefix = "#/components/"

// use marks the components that a part of the document needs.
func (t *text) use(n *yaml.Node, used map[string]bool) {
	if n == nil {
		return
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if steps := strings.SplitN(n.Value, "/", 5); n.Kind == yaml.ScalarNode && strings.HasPrefix(n.Value, componentsPrefix) && len(steps) > 3 {
		name := componentsPrefix + steps[2] + "/" + unescaped(steps[3])
		if !used[name] {
			used[name] = true
			t.use(t.find(componentsPrefix+steps[2]+"/"+steps[3]), used)
		}
	}
	for _, inner := range n.Content {
		t.use(inner, used)
	}
}

// find returns the node at a reference; nil if there is none.
func (t *text) find(ref string) *yaml.Node {
	at := t.root
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		if at = element(at, unescaped(name)); at != nil && at.Kind == yaml.AliasNode {
			at = at.Alias
		}
	}
	return at
}

func remove(n *yaml.Node, unwanted func(name string) bool) {
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		if unwanted(n.Content[i].Value) {
			n.Content = slices.Delete(n.Content, i, i+2)
		}
	}
}

// modern returns the document in OpenAPI 3.1, for kin-openapi. In 3.0 nullable says what a type does in 3.1;
// what stands beside a $ref says what another part of an allOf does.
func (t *text) modern() ([]byte, error) {
	if version := element(t.root, "openapi"); version != nil && strings.HasPrefix(version.Value, "3.") {
		version.Value, version.Tag = "3.1.0", "!!str"
	}
	rewrite(t.root, false)
	data, err := yaml.Marshal(t.root)
	var again yaml.Node
	if err == nil {
		err = yaml.Unmarshal(data, &again)
	}
	if err != nil || len(again.Content) == 0 {
		return nil, fmt.Errorf("gen: %s is not a readable OpenAPI document, correct it: %w", t.file, err)
	}
	t.lines = make(map[int]origin)
	t.compare(again.Content[0], t.root)
	return data, nil
}

func (t *text) compare(now, before *yaml.Node) {
	if _, ok := t.lines[now.Line]; !ok {
		t.lines[now.Line] = t.origin(before)
	}
	for i := range now.Content {
		t.compare(now.Content[i], before.Content[i])
	}
}

func (t *text) origin(n *yaml.Node) origin {
	if overlay := t.added[n]; overlay != "" {
		return origin{overlay, 0}
	}
	return origin{t.file, n.Line}
}

// place returns the origin of the node under names, or of the nearest around it.
func (t *text) place(names ...string) origin {
	at, place := t.root, t.origin(t.root)
	for _, name := range names {
		if at = element(at, name); at == nil {
			break
		}
		place = t.origin(at)
	}
	return place
}

// named are the keywords whose members have names that the document chooses.
var named = []string{"properties", "patternProperties", "schemas", "requestBodies", "responses", "parameters", "headers", "content", "webhooks", "paths"}

func rewrite(n *yaml.Node, names bool) {
	n.Style &^= yaml.FlowStyle // each member on a line of its own
	if n.Kind != yaml.MappingNode {
		for _, inner := range n.Content {
			rewrite(inner, false)
		}
		return
	}
	if ref := element(n, "$ref"); !names && ref != nil && len(n.Content) > 2 && strings.HasPrefix(ref.Value, SchemaPrefix) {
		besideRef(n, ref)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case names:
			rewrite(value, false)
		case key.Value == "nullable" && value.Tag == "!!bool":
			key.Value = nullableName
		case strings.HasPrefix(key.Value, "exclusive") && value.Tag == "!!bool":
			key.Value = "x-" + key.Value
		case slices.Contains([]string{"example", "examples", "default", "enum", "const"}, key.Value), strings.HasPrefix(key.Value, "x-"):
			block(value)
		default:
			rewrite(value, slices.Contains(named, key.Value))
		}
	}
}

const nullableName = "x-nullable" // in memory: the schema is nullable in OpenAPI 3.0

func block(n *yaml.Node) {
	n.Style &^= yaml.FlowStyle
	for _, inner := range n.Content {
		block(inner)
	}
}

// besideRef moves a $ref that has other keywords beside it into the schema's allOf.
func besideRef(n, ref *yaml.Node) {
	key := func(name string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: ref.Line}
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Line: ref.Line}
	list.Content = []*yaml.Node{{Kind: yaml.MappingNode, Content: []*yaml.Node{key("$ref"), ref}, Line: ref.Line}}
	if others := element(n, "allOf"); others != nil {
		list.Content = append(list.Content, others.Content...)
	}
	remove(n, func(name string) bool { return name == "allOf" || name == "$ref" })
	n.Content = append([]*yaml.Node{key("allOf"), list}, n.Content...)
}

// element returns the node under a name or, if it is a list, an index; nil if there is none.
func element(n *yaml.Node, name string) *yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
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
