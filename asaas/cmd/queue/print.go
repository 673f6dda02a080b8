package queue

import "github.com/paghooks/paghooks/internal/terminal"

// printJSON prints a value, indented.
func (p *program) printJSON(value any) error { return terminal.PrintJSON(p.out, value, "\t") }

// printLine prints a value as a line of JSON.
func (p *program) printLine(value any) error { return terminal.PrintJSON(p.out, value, "") }
