package main

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/paghooks/paghooks/gen/spec"
)

//go:embed templates/events.tmpl
var eventsTemplate string

func (p provider) eventsCode() (string, error) {
	structs, err := p.declarations(spec.IsEvent)
	if err != nil {
		return "", err
	}
	families := p.Families()
	names, err := methodsOf(families)
	if err != nil {
		return "", err
	}
	var aliased []spec.Event
	for _, f := range families {
		for _, e := range f.Events {
			if len(e.Aliases) > 0 {
				aliased = append(aliased, e)
			}
		}
	}
	return executed("events", eventsTemplate, map[string]any{
		"EventType": p.Schemas()[spec.EventTypeName].Value.Description,
		"Families":  families,
		"Methods":   names,
		"Aliased":   aliased,
		"Structs":   structs,
	})
}

// methodsOf returns the names of the methods for all events of a family, by its struct. A family
// of one event type has none: the type's own method is the same. OnPing of an event PING leaves
// the name OnAnyPing to the family of PingEvent.
func methodsOf(families []spec.Family) (map[string]string, error) {
	taken := make(map[string]string)
	for _, f := range families {
		for _, e := range f.Events {
			taken["On"+e.Name] = e.Type
		}
	}
	out := make(map[string]string)
	for _, f := range families {
		if len(f.Events) < 2 {
			continue
		}
		about := strings.TrimSuffix(f.Struct, "Event")
		name := "On" + about
		if taken[name] != "" {
			name = "OnAny" + about
		}
		if other := taken[name]; other != "" {
			return nil, fmt.Errorf("gen: %s and %s would both have the method %s: rename the schema", f.Struct, other, name)
		}
		out[f.Struct], taken[name] = name, f.Struct
	}
	return out, nil
}

func quotedList(paths []string) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = strconv.Quote(p)
	}
	return inLines(out, 80)
}

// inLines is a list on one line, or on one each where that is longer than width.
func inLines(list []string, width int) string {
	if line := strings.Join(list, ", "); len(line) < width {
		return line
	}
	return "\n" + strings.Join(list, ",\n") + ",\n"
}
