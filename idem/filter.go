package idem

import (
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Filter chooses events that are not done or discarded. The zero value means all
// of the source's that are unhandled or parked. States replaces that; each other
// field that is set narrows it. An empty list that is not nil chooses nothing.
type Filter struct {
	States []State  // StateUnhandled, StateParked; others that are not done
	Scopes []string // accounts
	Types  []string // the provider's event names
	Keys   []string // the entities that events are about
	IDs    []string // the provider's event ids
	Events []string // row keys, as [Common.Choose] returns them
	Failed bool     // only events of which an attempt has failed, also those that are tried again by themselves

	// Events that arrived at ReceivedFrom or later, and before ReceivedUntil, by the
	// database's clock. Zero does not narrow.
	ReceivedFrom, ReceivedUntil time.Time
}

// IsZero reports whether nothing of the filter is set.
func (f Filter) IsZero() bool {
	return f.States == nil && f.Scopes == nil && f.Types == nil && f.Keys == nil && f.IDs == nil && f.Events == nil && !f.Failed && f.ReceivedFrom.IsZero() && f.ReceivedUntil.IsZero()
}

// of is the filter for the events of a source.
func (f Filter) of(source string) store.Filter {
	return store.Filter{
		Source: source, States: f.states(), Scopes: f.Scopes, Types: f.Types, Keys: f.Keys, IDs: f.IDs,
		Events: f.Events, Failed: f.Failed, From: f.ReceivedFrom, Until: f.ReceivedUntil,
	}
}

func (f Filter) states() []string {
	if f.States == nil {
		return []string{store.Unhandled, store.Parked}
	}
	states := make([]string, len(f.States))
	for i, s := range f.States {
		states[i] = string(s)
	}
	return states
}

// String returns the filter's conditions in words, for people.
func (f Filter) String() string {
	parts := []string{"states " + strings.Join(f.states(), " ")}
	for _, list := range []struct {
		name   string
		values []string
	}{{"accounts", f.Scopes}, {"types", f.Types}, {"entities", f.Keys}, {"ids", f.IDs}} {
		if list.values != nil {
			parts = append(parts, list.name+" "+strings.Join(list.values, " "))
		}
	}
	if f.Events != nil {
		parts = append(parts, fmt.Sprintf("%d by row key", len(f.Events)))
	}
	if f.Failed {
		parts = append(parts, "failed")
	}
	if !f.ReceivedFrom.IsZero() {
		parts = append(parts, "received from "+f.ReceivedFrom.Format(time.RFC3339))
	}
	if !f.ReceivedUntil.IsZero() {
		parts = append(parts, "received until "+f.ReceivedUntil.Format(time.RFC3339))
	}
	return strings.Join(parts, "; ")
}
