package spec

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// checkProvider checks x-provider's paths in the bodies, and the signed text.
func (l *linter) checkProvider() {
	if !l.HasProvider {
		return
	}
	event := l.Provider.Event
	for _, path := range event.ID {
		l.checkEventPlace("id", path, l.notAName)
	}
	for _, path := range event.Time {
		l.checkEventPlace("time", path, l.notATime)
	}
	if l.typeIsNowhere {
		l.reportProvider("no body has "+event.Type+"; correct the name, or add it to the schemas", "event", "type")
	}
	for _, s := range l.Provider.Verify {
		l.checkScheme(s)
	}
}

// reportProvider reports a mistake at a place in x-provider.
func (l *linter) reportProvider(text string, place ...string) {
	names := append([]string{providerName}, place...)
	var root yaml.Node
	found := problem{l.Name, 0, strings.Join(names, "."), text}
	if yaml.Unmarshal(l.Data, &root) == nil && len(root.Content) > 0 {
		found.line = lineAt(root.Content[0], names)
	}
	l.problems = append(l.problems, found)
}

// checkEventPlace checks that a path of x-provider leads to a value in some body. In an object of which
// no property is listed it may lead anywhere.
func (l *linter) checkEventPlace(name, path string, wrong func(place) string) {
	owner, at := l.owner(path)
	switch {
	case owner == nil && !l.leadsIntoFreeObject(path):
		l.reportProvider("no body has "+path+"; correct the path, or add it to the schemas", "event", name)
	case owner != nil && wrong(at) != "":
		l.reportProvider(path+" "+wrong(at), "event", name)
	}
}

func (l *linter) leadsIntoFreeObject(path string) bool {
	for end, letter := range path {
		if letter != '.' {
			continue
		}
		if owner, at := l.owner(path[:end]); owner != nil {
			of := at.plain.Value
			_, isScalar := l.FormatOf(of)
			if IsHandWritten(of) || !isScalar && len(of.Properties) == 0 && of.Items == nil {
				return true
			}
		}
	}
	return false
}

// notAName returns the mistake of a path to an id that ends in no value; "" for none.
func (l *linter) notAName(at place) string {
	of := at.plain.Value
	if IsHandWritten(of) || slices.Contains([]string{"string", "integer", "number"}, TypeOf(of)) {
		return ""
	}
	return "ends neither in a text nor in a number, so that events have no id; give the path to an id"
}

// notATime returns the mistake of a path to a time that cannot be read; "" for none.
func (l *linter) notATime(at place) string {
	of := at.plain.Value
	if IsHandWritten(of) || TypeOf(of) == "string" || l.Clock() != "" {
		return ""
	}
	return "does not end in a text, so that events have no time; give the path to a time such as 2026-08-08T23:45:13Z, or leave it out"
}

func (l *linter) checkScheme(s Scheme) {
	timed := 0
	for _, text := range s.Text {
		if strings.Contains(text, "{time}") {
			timed++
		}
	}
	inText := timed > 0
	switch sent := strings.Contains(s.Value, "{time}"); {
	case sent && s.TimeHeader != "":
		l.reportProvider("the time is in "+s.Header+" and in "+s.TimeHeader+"; write one of them", "verify")
	case inText && timed < len(s.Text):
		l.reportProvider("{time} is in one text and not in another, of which a code fits any time; write it into all of them, or make them two schemes", "verify")
	case inText && !sent && s.TimeHeader == "":
		l.reportProvider("{time} is signed, and no header has it; write it into value, such as t={time},v1={mac}, or name a timeHeader", "verify")
	case !inText && (sent || s.TimeHeader != ""):
		l.reportProvider("the time is sent, and not signed, so that anybody can change it; write {time} into text, or leave it out", "verify")
	}
}
