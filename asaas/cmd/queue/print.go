package queue

import (
	"fmt"

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

// advise prints the next step.
func (p *program) advise(next string) error {
	if p.json {
		return p.printLine(advice{p.id, next})
	}
	_, err := fmt.Fprintln(p.out, p.text("next: %s", next))
	return err
}

// advice is a next step, as JSON.
type advice struct {
	ID   string `json:"id"`
	Next string `json:"next"`
}
