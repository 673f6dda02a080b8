package queue

import (
	"github.com/paghooks/paghooks/internal/lang"
	"github.com/paghooks/paghooks/internal/terminal"
)

// printLine prints a value as a line of JSON.
func (p *program) printLine(value any) error { return terminal.PrintJSON(p.out, value) }

// text says a text in the reader's language, which is English in JSON and beside it.
func (p *program) text(t lang.Text, args ...any) string {
	if p.json {
		return portuguese.Say(lang.English, t, args...)
	}
	return portuguese.Say(p.lang, t, args...)
}
