package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// perPage is the number of events or actions that a page lists.
const perPage = 50

func (v *visit) events(ctx context.Context) error {
	chosen := choiceOf(v.r.Form)
	f, err := chosen.filter()
	if err != nil {
		return err
	}
	place := operator.Place{Event: v.r.Form.Get("before")}
	if at := v.r.Form.Get("at"); at != "" {
		if place.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return refuse(http.StatusBadRequest, "This link to a page is broken: begin at the first.")
		}
	}
	p, err := v.source.events.Page(ctx, f, place, perPage)
	if err != nil {
		return err
	}
	shown := struct {
		Choice choice
		States []idem.State
		Events []idem.StoredEvent
		First  bool
		Next   string
	}{Choice: chosen, States: []idem.State{idem.StatePending, failing, idem.StateUnhandled, idem.StateParked}, Events: p.Events, First: place.At.IsZero()}
	if !p.Next.At.IsZero() {
		shown.Next = query(append(chosen.Fields(), field{"at", p.Next.At.Format(time.RFC3339Nano)}, field{"before", p.Next.Event})...)
	}
	v.hideErrors(shown.Events)
	return v.render(http.StatusOK, "events", v.say("Events"), shown)
}

// detail is one event.
type detail struct {
	operator.Lookup
	Open    bool // not done or discarded
	Stored  bool // its body is
	Body    string
	Shown   string              // how its body is shown: "", "masked" or "whole"
	Verbs   []verb              // that may be asked for
	Actions []operator.ActionOn // the last ones that touched it
}

// maxActions is the number of actions that the page of an event lists.
const maxActions = 20

// found returns the event that the request names.
func (v *visit) found(ctx context.Context) (d detail, err error) {
	e, ok, err := v.source.events.Lookup(ctx, v.r.Form.Get("account"), v.r.Form.Get("id"))
	switch {
	case err != nil:
		return d, err
	case !ok:
		return d, refuse(http.StatusNotFound, "There is no such event: it never came, or was forgotten after the retention.")
	}
	touched, err := v.source.events.ActionsOn(ctx, e.Scope, e.ID, maxActions)
	if err != nil {
		return d, err
	}
	isNoted, isOpen := !e.AcknowledgedAt.IsZero(), isOpen(e.StoredEvent)
	may := offered(func(a verb) bool {
		switch a.Name {
		case "acknowledge":
			return !isNoted && (standing(e.StoredEvent) == failing || e.State == idem.StateParked)
		case "unacknowledge":
			return isNoted
		}
		return isOpen || a.IsOfNamed
	})
	v.hideErrorsOf(&e)
	return detail{Lookup: e, Actions: touched, Open: isOpen, Stored: e.Payload != nil, Verbs: may}, nil
}

func (v *visit) event(ctx context.Context) error {
	d, err := v.found(ctx)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "event", v.say("Event"), d)
}

// reveal records that the user looks at a body, and then shows the event with it.
func (v *visit) reveal(ctx context.Context) error {
	d, err := v.found(ctx)
	if err != nil {
		return err
	}
	d.Shown = "masked"
	if v.r.PostForm.Get("whole") != "" {
		d.Shown = "whole"
	}
	what := "id " + d.ID
	if d.Scope != "" {
		what += "; account " + d.Scope
	}
	err = v.operator().Record(ctx, "reveal", what, reasonOf(v.r.PostForm), func(context.Context) (string, error) {
		if d.Shown == "whole" {
			d.Body = whole(d.Payload)
		} else {
			d.Body = masked(d.Payload)
		}
		return "shown " + d.Shown, nil
	})
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "event", v.say("Event"), d)
}

// reasonOf returns the reason in a form, as the trail stores it.
func reasonOf(form url.Values) string {
	reason := strings.Join(strings.Fields(form.Get("reason")), " ")
	return strings.ToValidUTF8(reason[:min(len(reason), 500)], "")
}

// open are the states of events that are not done.
var open = []idem.State{idem.StatePending, idem.StateUnhandled, idem.StateParked}

func isOpen(e idem.StoredEvent) bool { return slices.Contains(open, e.State) }

// maxShown is the largest number of lines of a page that is not one of several.
const maxShown = 250

// choice is a filter as a form has it. Empty fields do not narrow it.
type choice struct {
	Source, State, Type, Entity, Account, ID string
	From, Until                              string // UTC, as browsers send it
	One                                      string // "1": one event; its account may be empty

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
	c := choice{
		Source: get("source"), State: get("state"), Type: get("type"), Entity: get("entity"), Account: get("account"), ID: get("id"),
		From: get("from"), Until: get("until"), One: get("one"),
		Chosen: get("chosen"), Events: form["event"],
	}
	if get("whole") != "" { // all that the filter chooses, and not these
		c.Chosen, c.Events = "", nil
	}
	return c
}

// filter returns the choice as a filter of package idem.
func (c choice) filter() (f idem.Filter, err error) {
	switch state := idem.State(c.State); {
	case state == "":
		f.States = open
	case state == failing:
		f.States, f.Failed = []idem.State{idem.StatePending}, true
	case slices.Contains(open, state):
		f.States = []idem.State{state}
	default:
		return f, refuse(http.StatusBadRequest, "Choose one of the states: events that are done are not kept in lists.")
	}
	f.Types, f.Keys, f.IDs, f.Scopes = only(c.Type), only(c.Entity), only(c.ID), only(c.Account)
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

// Narrowing returns the fields that narrow the events of the source.
func (c choice) Narrowing() []field {
	c.Source = ""
	return c.Fields()
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
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02"} {
		if t, err = time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	return t, refuse(http.StatusBadRequest, "A time is to be written like 2026-11-20T15:04; it is in UTC.")
}

// Fields returns the fields that are set, for hidden inputs and addresses.
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
		{"chosen", c.Chosen},
	}
	for _, key := range c.Events {
		all = append(all, field{"event", key})
	}
	return slices.DeleteFunc(all, func(f field) bool { return f.Value == "" })
}

// List returns the fields of the list that the choice was made on, for addresses.
func (c choice) List() []field {
	c.Chosen, c.Events, c.One = "", nil, ""
	return c.Fields()
}

// field is a field of a form.
type field struct{ Name, Value string }

// query returns the fields of a form as an address has them.
func query(fields ...field) string {
	values := url.Values{}
	for _, f := range fields {
		values.Add(f.Name, f.Value)
	}
	return values.Encode()
}

// unstorable reports whether Postgres refuses a text.
func unstorable(s string) bool { return !utf8.ValidString(s) || strings.Contains(s, "\x00") }

// value is a text or a number on a line of indented JSON, with the name before it.
var value = regexp.MustCompile(`(?m)^(\s*(?:"(?:[^"\\]|\\.)*": )?)("?)(?:(?:[^"\\]|\\.)*"|-?[0-9][^,\n]*)(,?)$`)

// masked returns a JSON body, indented, with every text and number replaced by dots.
// Names of fields, true, false and null stay. Of a body that is not JSON, or nested more
// than 50 deep, it returns only the length.
func masked(body []byte) string {
	indented, ok := indent(body)
	if !ok {
		return fmt.Sprintf("not JSON, or too deep, %d bytes", len(body))
	}
	return strings.ToValidUTF8(value.ReplaceAllString(string(indented), "$1$2•••$2$3"), "\uFFFD")
}

// whole returns a body for people: JSON is indented, and its numbers stay as they were sent.
func whole(body []byte) string {
	if indented, ok := indent(body); ok {
		body = indented
	}
	return strings.ToValidUTF8(string(body), "\uFFFD")
}

// maxDepth bounds the indentation of a body.
const maxDepth = 50

func indent(body []byte) ([]byte, bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	for depth := 0; ; {
		token, err := d.Token()
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if err == io.EOF {
			break
		}
		if err != nil || depth > maxDepth {
			return nil, false
		}
	}
	var out bytes.Buffer
	err := json.Indent(&out, bytes.TrimSpace(body), "", "  ")
	return out.Bytes(), err == nil
}

// hide drops errors if the user may not see bodies: a handler's error may contain personal data.
func (v *visit) hide(errors ...*string) {
	for _, text := range errors {
		if !v.access.Reveal {
			*text = ""
		}
	}
}

func (v *visit) hideErrors(events []idem.StoredEvent) {
	for n := range events {
		v.hide(&events[n].LastError)
	}
}

// hideErrorsOf does the same for an event, and for the one that it waits for.
func (v *visit) hideErrorsOf(l *operator.Lookup) {
	for ; l != nil; l = l.First {
		v.hide(&l.LastError)
		for n := range l.Failures {
			v.hide(&l.Failures[n].Error)
		}
	}
}
