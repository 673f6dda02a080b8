package idem

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Events of different names must never share a row.
func FuzzRowKeyIsUnique(f *testing.F) {
	f.Add("", "evt_1", "shop", "evt_1")
	f.Add("a/b", "c", "a", "b/c")
	f.Add("a%2Fb", "c", "a/b", "c")
	f.Add("", "/", "/", "")
	f.Fuzz(func(t *testing.T, scopeA, idA, scopeB, idB string) {
		a := rowKey(Event{Source: "asaas", Scope: scopeA, ID: idA})
		b := rowKey(Event{Source: "asaas", Scope: scopeB, ID: idB})
		if same := scopeA == scopeB && idA == idB; same != (a == b) {
			t.Errorf("(%q, %q) and (%q, %q) have the keys %q and %q", scopeA, idA, scopeB, idB, a, b)
		}
		if source, scope, id := parseRowKey(a); source != "asaas" || scope != scopeA || id != idA {
			t.Errorf("%q is read as (%q, %q, %q)", a, source, scope, id)
		}
	})
}

// Whatever a provider sends, its names fit a text column and its index.
func FuzzNormalizedEventFitsItsColumns(f *testing.F) {
	f.Add("evt_1", "PAYMENT_RECEIVED", "pay_1", []byte("{}"))
	f.Add("\x00", "\xff", strings.Repeat("x", 300), []byte(nil))
	f.Fuzz(func(t *testing.T, id, eventType, key string, payload []byte) {
		p := NewProcessor(nil, nil)
		e := p.normalize(Event{Source: "asaas", ID: id, Type: eventType, Key: key, Payload: payload})
		for _, name := range []string{e.ID, e.Type, e.Key} {
			if !nameable(name) {
				t.Errorf("%q does not fit", name)
			}
		}
		if e.ID == "" || e.Payload == nil {
			t.Error("the event has no id or no payload")
		}
		if again := p.normalize(e); again.ID != e.ID || again.Type != e.Type || again.Key != e.Key {
			t.Error("normalizing twice changes the event")
		}
	})
}

func FuzzErrorTextFitsItsColumn(f *testing.F) {
	f.Add("no such order")
	f.Add("\x00\xff" + strings.Repeat("é", maxErrorText))
	f.Fuzz(func(t *testing.T, message string) {
		text := *errorText(errorString(message))
		if len(text) > maxErrorText || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			t.Errorf("%q does not fit", text)
		}
	})
}

type errorString string

func (e errorString) Error() string { return string(e) }
