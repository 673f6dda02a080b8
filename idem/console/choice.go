package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paghooks/paghooks/idem"
)

// open are the states of events that are not done.
var open = []idem.State{idem.StatePending, idem.StateRetrying, idem.StateUnhandled, idem.StateParked}

func isOpen(e idem.StoredEvent) bool { return slices.Contains(open, e.State) }

// maxShown is the largest number of lines of a page that is not one of several.
const maxShown = 250

// choice is a filter as a form has it. Empty fields do not narrow it.
type choice struct {
	Source, State, Type, Entity, Account, ID string
	From, Until                              string // UTC, as browsers send it
	One                                      string // "1": one event; its account may be empty
	Failed                                   string // "1": only events that have failed; "again": and are tried again by themselves

	Chosen string   // "1": the events with their row keys in Events, even if that is empty
	Events []string // of a list's checkboxes
}

func choiceOf(form url.Values) choice {
	get := func(name string) string {
		if form.Get("one") != "" {
			return form.Get(name)
		}
		return strings.TrimSpace(form.Get(name)) // typed by hand
	}
	return choice{
		Source: get("source"), State: get("state"), Type: get("type"), Entity: get("entity"), Account: get("account"), ID: get("id"),
		From: get("from"), Until: get("until"), One: get("one"), Failed: get("failed"),
		Chosen: get("chosen"), Events: form["event"],
	}
}

// filter is the choice as package idem has it.
func (c choice) filter() (f idem.Filter, err error) {
	f.States = open
	if c.State != "" {
		if !slices.Contains(open, idem.State(c.State)) {
			return f, refuse(http.StatusBadRequest, "Choose one of the states: events that are done are not kept in lists.")
		}
		f.States = []idem.State{idem.State(c.State)}
	}
	f.Types, f.Keys, f.IDs, f.Scopes = only(c.Type), only(c.Entity), only(c.ID), only(c.Account)
	if f.Failed = c.Failed != ""; c.Failed == again && c.State == "" {
		f.States = []idem.State{idem.StatePending, idem.StateRetrying}
	}
	if c.Chosen != "" {
		f.Events = append([]string{}, c.Events...)
	}
	if c.One != "" {
		f.Scopes, f.IDs = []string{c.Account}, []string{c.ID}
	}
	if f.ReceivedFrom, err = parseTime(c.From); err != nil {
		return f, err
	}
	f.ReceivedUntil, err = parseTime(c.Until)
	return f, err
}

// again is the value of the field failed for events that are tried again by themselves.
const again = "again"

// Narrowed returns by how many fields the choice narrows the events.
func (c choice) Narrowed() int {
	c.Source = ""
	return len(c.Fields())
}

func only(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// parseTime parses the value of an input of type datetime-local.
func parseTime(value string) (t time.Time, err error) {
	if value == "" {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04:05.000", "2006-01-02"} {
		if t, err = time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	return t, refuse(http.StatusBadRequest, "A time is to be written like 2026-11-20T15:04; it is in UTC.")
}

// Fields are those that are set, for hidden inputs and addresses.
func (c choice) Fields() []field {
	all := []field{
		{"source", c.Source},
		{"state", c.State},
		{"type", c.Type},
		{"entity", c.Entity},
		{"account", c.Account},
		{"id", c.ID},
		{"from", c.From},
		{"until", c.Until},
		{"one", c.One},
		{"failed", c.Failed},
		{"chosen", c.Chosen},
	}
	for _, key := range c.Events {
		all = append(all, field{"event", key})
	}
	return slices.DeleteFunc(all, func(f field) bool { return f.Value == "" })
}

// List are the fields of the list that the choice was made on, for addresses.
func (c choice) List() []field {
	c.Chosen, c.Events, c.One = "", nil, ""
	return c.Fields()
}

// field is one of a form's.
type field struct{ Name, Value string }

// query is a form's fields as an address has them.
func query(fields ...field) string {
	values := url.Values{}
	for _, f := range fields {
		values.Add(f.Name, f.Value)
	}
	return values.Encode()
}

// unstorable reports whether Postgres refuses a text.
func unstorable(s string) bool { return !utf8.ValidString(s) || strings.Contains(s, "\x00") }
