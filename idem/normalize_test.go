package idem

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Whatever a provider sends, its names fit a text column and its index.
func FuzzNormalizedEventFitsItsColumns(f *testing.F) {
	f.Add("evt_1", "PAYMENT_RECEIVED", "pay_1", []byte("{}"))
	f.Add("\x00", "\xff", strings.Repeat("x", 300), []byte(nil))
	f.Fuzz(func(t *testing.T, id, eventType, key string, payload []byte) {
		p := NewProcessor(nil, &strangers{})
		e, err := p.normalize(Event{ID: id, Type: eventType, Key: key, Payload: payload})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{e.ID, e.Type, e.Key} {
			if !nameable(name) {
				t.Errorf("%q does not fit", name)
			}
		}
		if e.ID == "" || e.Payload == nil || e.Source != "strangers" {
			t.Error("the event has no source, no id or no payload")
		}
		again, err := p.normalize(e)
		if err != nil || again.ID != e.ID || again.Type != e.Type || again.Key != e.Key {
			t.Error("normalizing twice changes the event")
		}
	})
}

// JSON has years of four digits, in the zone of whoever writes it: idem list -json in
// UTC, an application in its own.
func TestTheProvidersTimeFitsJSONInEveryZone(t *testing.T) {
	t.Parallel()
	brasilia := time.FixedZone("-03", -3*60*60)
	for at, kept := range map[time.Time]bool{
		time.Date(2026, 8, 8, 20, 45, 13, 0, brasilia):               true,
		time.Date(9999, 12, 31, 23, 59, 59, 0, brasilia):             false,
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC):             false,
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC):                 false,
		time.Date(-1, 1, 1, 0, 0, 0, 0, brasilia):                    false,
		time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC):                     true,
		time.Date(9998, 12, 31, 23, 59, 59, 0, time.UTC):             true,
		time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("", 14*60*60)): false,
	} {
		e, err := NewProcessor(nil, &strangers{}).normalize(Event{ID: "evt_1", OccurredAt: at})
		if err != nil || e.OccurredAt.IsZero() == kept {
			t.Errorf("%s is normalized to %s, %v", at, e.OccurredAt, err)
		}
		for _, hours := range []int{-12, 0, 14} {
			if text, err := json.Marshal(e.OccurredAt.In(time.FixedZone("", hours*60*60))); err != nil {
				t.Errorf("%s is written as %s, %v", at, text, err)
			}
		}
	}
}

func FuzzErrorTextFitsItsColumn(f *testing.F) {
	f.Add("no such order")
	f.Add("\x00\xff" + strings.Repeat("é", store.MaxError))
	f.Fuzz(func(t *testing.T, message string) {
		text := *errorText(errors.New(message))
		if len(text) > store.MaxError || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			t.Errorf("%q does not fit", text)
		}
	})
}

// A source's name is the first part of every row key: with a slash, or empty, its
// events would be another's.
func TestSourceWhoseNameIsNoNamePanics(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]string{
		"":                       "empty",
		"shop/asaas":             "a slash",
		"/":                      "a slash only",
		"asa\x00as":              "what a text column cannot hold",
		"asa\xffas":              "not UTF-8",
		strings.Repeat("x", 256): "too long for an index",
	} {
		for _, open := range []func(){
			func() { NewProcessor(nil, named{name: name}) },
			func() { NewInbox(nil, named{name: name}) },
		} {
			func() {
				defer func() {
					if said, _ := recover().(string); !strings.Contains(said, "idem: a source's name is ") {
						t.Errorf("%s: the panic says %q", why, said)
					}
				}()
				open()
			}()
		}
	}
	NewProcessor(nil, named{name: "asaas-2 (São Paulo)"})
}

// named is a source of which only the name matters.
type named struct {
	*strangers
	name string
}

func (n named) Name() string { return n.name }
