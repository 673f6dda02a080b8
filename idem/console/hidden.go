package console

import (
	"slices"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// errorsHidden returns events without their errors for users that may not see bodies: a handler's error
// may have a person's data.
func (v *visit) errorsHidden(events []idem.StoredEvent) []idem.StoredEvent {
	if v.access.Reveal {
		return events
	}
	hidden := slices.Clone(events)
	for n := range hidden {
		hidden[n].LastError = ""
	}
	return hidden
}

// errorsHiddenOf is the same for an event with the event that it waits for.
func (v *visit) errorsHiddenOf(l operator.Lookup) operator.Lookup {
	if v.access.Reveal {
		return l
	}
	l.LastError = ""
	l.Failures = slices.Clone(l.Failures)
	for n := range l.Failures {
		l.Failures[n].Error = "–"
	}
	if l.First != nil {
		l.First = new(v.errorsHiddenOf(*l.First))
	}
	return l
}
