package queue

import "encoding/json"

// printJSON prints a value, indented.
func (p *program) printJSON(value any) error {
	e := json.NewEncoder(p.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	return e.Encode(value)
}

// printLine prints a value as a line of JSON.
func (p *program) printLine(value any) error {
	e := json.NewEncoder(p.out)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}
