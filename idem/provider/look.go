package provider

import (
	"bytes"
	"strings"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/peek"
)

// path leads from the body to a value.
type path []step

type step struct {
	name     []byte
	optional bool // null empties it, and another one replaces it whole
	number   bool // it may be a number, which is taken as it is written
}

func pathOf(text string) (p path) {
	if text == "" {
		return nil
	}
	for name := range strings.SplitSeq(text, ".") {
		plain, number := strings.CutSuffix(name, "#")
		plain, optional := strings.CutSuffix(plain, "?")
		p = append(p, step{[]byte(plain), optional, number})
	}
	return p
}

func pathsOf(texts []string) []path {
	var out []path
	for _, text := range texts {
		out = append(out, pathOf(text))
	}
	return out
}

// members are those of a body, in their order.
type members []member

type member struct{ name, value []byte }

// look finds the members of a body; none, if it is not a whole JSON object. The value that is
// found in them is that of decoding.
func look(room members, body []byte) members {
	whole := peek.Members(body, func(name, value []byte) {
		room = append(room, member{peek.Name(name), value})
	})
	if !whole {
		return nil
	}
	return room
}

func (m members) has(p path) bool {
	for _, member := range m {
		if len(p) > 0 && bytes.EqualFold(member.name, p[0].name) {
			return true
		}
	}
	return false
}

// each calls take with every value at a path, and with nil where a value taken
// before counts no more.
func (m members) each(p path, take func(value []byte)) {
	if len(p) == 0 {
		return
	}
	for _, member := range m {
		if bytes.EqualFold(member.name, p[0].name) {
			p.into(member.value, take)
		}
	}
}

func (p path) into(value []byte, take func(value []byte)) {
	if p[0].optional {
		take(nil)
	}
	if p = p[1:]; len(p) == 0 {
		take(value)
		return
	}
	peek.Members(value, func(name, value []byte) {
		if bytes.EqualFold(peek.Name(name), p[0].name) {
			p.into(value, take)
		}
	})
}

// first is the text at the first path that has one.
func (m members) first(paths []path) string {
	for _, p := range paths {
		if text := m.text(p); text != "" {
			return text
		}
	}
	return ""
}

// id is the first of the names of an event. One that is not valid Unicode is hashed as
// it is written: decoded, all such ids were one.
func (m members) id(paths []path) string {
	for _, p := range paths {
		switch text, written := m.read(p); {
		case text != "" && peek.Lossy(written):
			return idem.BodyID(written)
		case text != "":
			return text
		}
	}
	return ""
}

// text is the text at a path.
func (m members) text(p path) string {
	text, _ := m.read(p)
	return text
}

// read is the text at a path, and its JSON.
func (m members) read(p path) (text string, written []byte) {
	number := len(p) > 0 && p[len(p)-1].number
	m.each(p, func(value []byte) {
		switch {
		case value == nil:
			text, written = "", nil
		case value[0] == '"' || number && (value[0] == '-' || '0' <= value[0] && value[0] <= '9'):
			peek.Text(value, &text)
			written = value
		}
	})
	return text, written
}

func (m members) isTrue(p path) (is bool) {
	m.each(p, func(value []byte) { is = string(value) == "true" })
	return is
}
