package queue

import (
	"fmt"

	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// printLine prints a value as a line of JSON.
func (p *program) printLine(value any) error { return terminal.PrintJSON(p.out, value) }

// advise prints the next step.
func (p *program) advise(next string) error {
	if p.json {
		return p.printLine(advice{p.id, next})
	}
	_, err := fmt.Fprintln(p.out, command.Text("next: %s", next))
	return err
}

// advice is a next step, as JSON.
type advice struct {
	ID   string `json:"id"`
	Next string `json:"next"`
}
