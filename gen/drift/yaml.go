package drift

import (
	"gopkg.in/yaml.v3"

	"github.com/paghooks/paghooks/gen/spec"
)

// text is a YAML string. It is quoted where it would not be one otherwise.
func text(s string) *yaml.Node {
	var n yaml.Node
	n.SetString(s)
	return &n
}

func texts(list []string) *yaml.Node {
	out := sequence()
	for _, s := range list {
		out.Content = append(out.Content, text(s))
	}
	return out
}

func sequence(elements ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: elements}
}

// mapping takes names and nodes by turns, and keeps their order.
func mapping(pairs ...any) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i < len(pairs); i += 2 {
		put(out, pairs[i].(string), pairs[i+1].(*yaml.Node))
	}
	return out
}

func put(m *yaml.Node, name string, value *yaml.Node) {
	m.Content = append(m.Content, text(name), value)
}

// child returns the node below a mapping at the end of names; nil if there is nothing.
func child(m *yaml.Node, names ...string) *yaml.Node {
	for _, name := range names {
		if m == nil || m.Kind != yaml.MappingNode {
			return nil
		}
		var value *yaml.Node
		for i := 0; i < len(m.Content); i += 2 {
			if m.Content[i].Value == name {
				value = m.Content[i+1]
			}
		}
		m = value
	}
	return m
}

// schema is the schema of a spec.Scalar, in YAML.
func scalarNode(s spec.Scalar, nullable bool) *yaml.Node {
	kind := text(s.Kind)
	if nullable {
		kind = texts([]string{s.Kind, "null"})
		kind.Style = yaml.FlowStyle
	}
	out := mapping("type", kind)
	if s.Format != "" {
		put(out, "format", text(s.Format))
	}
	return out
}
