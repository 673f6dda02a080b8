package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	"github.com/paghooks/paghooks/gen/spec"
)

//go:embed templates/events.tmpl
var eventsTemplate string

func (p provider) eventsCode() (string, error) {
	structs, err := p.declarations(spec.IsEvent)
	if err != nil {
		return "", err
	}
	t := template.Must(template.New("events").Funcs(template.FuncMap{
		"about":   about,
		"when":    when,
		"comment": comment,
		"clause":  clause,
		"quoted":  quotedList,
	}).Parse(eventsTemplate))
	families := p.Families()
	var aliased []spec.Event
	for _, f := range families {
		for _, e := range f.Events {
			if len(e.Aliases) > 0 {
				aliased = append(aliased, e)
			}
		}
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{
		"EventType": p.Schemas()[spec.EventTypeName].Value.Description,
		"Families":  families,
		"Aliased":   aliased,
		"Structs":   structs,
	})
	if err != nil {
		return "", fmt.Errorf("gen: the template of the events is wrong, correct it: %w", err)
	}
	return b.String(), nil
}

func quotedList(paths []string) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = strconv.Quote(p)
	}
	if line := strings.Join(out, ", "); len(line) < 80 {
		return line
	}
	return "\n" + strings.Join(out, ",\n") + ",\n"
}
