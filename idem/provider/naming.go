package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/peek"
)

// Identify names the event of a verified body. It never fails: a body that cannot
// be read has no Type, and an ID made by [idem.BodyID], as has an id that is not
// valid Unicode. Nor has a body a Type whose name has a space, or lower-case or capital letters that
// no known name has: it is an envelope's. Scope is left to the caller.
//
// The body is not decoded, only looked through for its names: a field that does
// not fit its type is found when the event is routed to a handler. Names that only signed headers
// have are not known here: the event of [Dispatcher.Open] has them.
func (p *Definition) Identify(body []byte) idem.Event {
	var room [12]member // seldom more
	e, _ := p.identify(body, look(room[:0], body), words{})
	return e
}

// Decode decodes a verified body into the struct of its type, or into the value that other
// returns for a type that is not known. Fields that the struct does not have are
// skipped.
func (p *Definition) Decode(body []byte, other func() any) (any, error) {
	var room [12]member
	root := look(room[:0], body)
	said := root.text(p.places().eventType)
	if said == "" {
		return nil, fmt.Errorf("%s: the body is not an event: it is no JSON object with a %s that names one", p.Source, p.Naming.Type)
	}
	eventType := said
	if p.Naming.Canonical != nil {
		eventType = p.Naming.Canonical(said)
	}
	e := p.Empty(eventType)
	if e == nil || root.has(p.places().ping) { // a test of the address has a real event's name, and nothing else of it
		e = other()
	}
	if err := json.Unmarshal(body, e); err != nil {
		return nil, fmt.Errorf("%s: a %s does not decode: keep the body, and look for a newer version of this package: %w", p.Source, said, err)
	}
	return e, nil
}

// Plain returns an event type without [TestSuffix].
func Plain(eventType string) string { return strings.TrimSuffix(eventType, TestSuffix) }

// words are the signed names of an event, which unsigned headers may repeat.
type words struct {
	eventType, id string
	signed        bool // in headers
}

// namesOf returns the names that a scheme signs in headers.
func namesOf(scheme Scheme, h http.Header) (said words) {
	if namer, ok := scheme.(Namer); ok {
		said.id, said.eventType = namer.Names(h)
		said.signed = said.id != "" || said.eventType != ""
	}
	if !utf8.ValidString(said.id) {
		said.id = idem.BodyID([]byte(said.id))
	}
	return said
}

// identify names the event of a body. The names that headers have count where the body has none.
func (p *Definition) identify(body []byte, root members, headers words) (idem.Event, words) {
	at := p.places()
	said := words{cmp.Or(root.text(at.eventType), headers.eventType), cmp.Or(root.id(at.ids), headers.id), headers.signed}
	plain := said.eventType
	switch {
	case root.has(at.ping):
		plain = PingType
	case p.Naming.Canonical != nil:
		plain = p.Naming.Canonical(plain)
	}
	if !at.mayName(plain) {
		plain = ""
	}
	own := at.of(plain)
	e := idem.Event{Source: p.Source, ID: said.id, Type: plain, Key: root.first(own.key), Payload: body}
	if e.ID == "" {
		if e.ID = idem.BodyID(body); root.id(own.id) != "" {
			e.ID = plain + ":" + root.id(own.id)
		}
	}
	if root.isTrue(own.test) {
		e.Type += TestSuffix
	}
	e.OccurredAt = p.timeAt(root, own.times, at.times)
	return e, said
}

// timeAt returns the first time that can be read, or the zero time.
func (p *Definition) timeAt(root members, lists ...[]path) time.Time {
	clock := p.Naming.Clock
	if clock == nil {
		clock = readTime
	}
	for _, paths := range lists {
		for _, path := range paths {
			if text := root.text(path); text != "" {
				if at, err := clock(text); err == nil {
					return at
				}
			}
		}
	}
	return time.Time{}
}

// readTime reads a time, which may be a number of seconds since 1970, or of milliseconds.
func readTime(text string) (time.Time, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 1e11 {
		return time.UnixMilli(n), nil
	} else if err == nil {
		return time.Unix(n, 0), nil
	}
	return value.Time(text).Time()
}

// places are the parsed paths of a [Naming].
type places struct {
	eventType, ping path
	ids, times      []path
	events          map[string]*named
	lower, upper    bool // letters that the names of events have
}

// named holds the places of an event type's names.
type named struct {
	empty          any // its struct, without anything in it; never written to
	key, id, times []path
	test           path
	ping           bool
}

func (p *Definition) places() *places {
	p.once.Do(func() {
		n := p.Naming
		p.read = &places{
			eventType: pathOf(n.Type), ping: pathOf(n.Ping), ids: pathsOf(n.IDs), times: pathsOf(n.Times),
			events: make(map[string]*named),
		}
		for _, own := range n.Events {
			for _, t := range own.Types {
				p.read.events[t] = &named{p.Empty(t), pathsOf(own.Key), pathsOf(own.ID), pathsOf(own.Times), pathOf(own.Test), own.Ping}
				p.read.lower = p.read.lower || strings.ToUpper(t) != t
				p.read.upper = p.read.upper || strings.ToLower(t) != t
			}
		}
		p.read.events[""] = new(named)
	})
	return p.read
}

// of returns the places of an event type's names.
func (p *places) of(eventType string) *named {
	if known := p.events[eventType]; known != nil {
		return known
	}
	return p.events[""]
}

// mayName reports whether a text may name an event, if a new one. An envelope around the body may have a
// name of its own: "message", where a provider's are of capital letters.
func (p *places) mayName(text string) bool {
	switch {
	case p.events[text] != nil, text == PingType, text == store.CanaryType, !p.lower && !p.upper:
		return true
	case strings.ContainsFunc(text, unicode.IsSpace):
		return false
	}
	return (p.lower || strings.ToUpper(text) == text) && (p.upper || strings.ToLower(text) == text)
}

// members are the members of a JSON object, in their order.
type members []member

type member struct{ name, value []byte }

// look returns the members of a body, or nil if the body is not a whole JSON object. It appends to
// room. Reading a value from the members gives the same result as decoding the body.
func look(room members, body []byte) members {
	whole := peek.Members(body, func(name, value []byte) {
		room = append(room, member{peek.Name(name), value})
	})
	if !whole {
		return nil
	}
	return room
}

// path leads from the body to a value.
type path []step

type step struct {
	name     []byte
	optional bool // null removes the value, and a second member of the name replaces it
	number   bool // the value may be a number, which is read as it is written
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

func (m members) has(p path) bool {
	for _, member := range m {
		if len(p) > 0 && bytes.EqualFold(member.name, p[0].name) {
			return true
		}
	}
	return false
}

// each calls take with every value at a path, and with nil when an optional member resets the value.
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

// first returns the text at the first path that has one.
func (m members) first(paths []path) string {
	for _, p := range paths {
		if text := m.text(p); text != "" {
			return text
		}
	}
	return ""
}

// id returns the text at the first path that has one. A text that is not valid Unicode is hashed as
// it is written, because decoding would make different ids equal.
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

// text returns the text at a path.
func (m members) text(p path) string {
	text, _ := m.read(p)
	return text
}

// read returns the text at a path, and its JSON.
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
