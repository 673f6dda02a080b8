package spec

import (
	"net/url"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// checkText looks for $refs that lead nowhere or away, of which kin-openapi stops at
// the first and does not tell where it is, and for extensions that are wrong.
func (l *linter) checkText() error {
	var root yaml.Node
	if yaml.Unmarshal(l.Data, &root) != nil || len(root.Content) == 0 {
		return nil // which kin-openapi tells better
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

// wrongReference returns the fault of a $ref, "" if nothing is.
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

// unescaped is a name in a JSON pointer.
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
