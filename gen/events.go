package main

import (
	_ "embed"
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
		"Aliased":   aliased,
		"Structs":   structs,
	})
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
