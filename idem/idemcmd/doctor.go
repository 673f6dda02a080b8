package idemcmd

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem/doctor"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// doctor prints its findings.
func (p *program) doctor(ctx context.Context) error {
	findings, err := doctor.Check(ctx, p.pool, p.receivers...)
	if err != nil {
		return err
	}
	findings = append(doctor.CheckWebhooks(ctx, p.Webhooks...), findings...)
	var errorsFound int
	for _, f := range findings {
		if f.Severity == doctor.Error {
			errorsFound++
		}
		if p.json {
			err = p.printLine(f)
		} else {
			err = p.printFinding(f)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case errorsFound > 0:
		return command.Said(command.Attention)
	case !p.json && len(findings) == 0:
		_, err = fmt.Fprintln(p.Stdout, "All is well.")
	}
	return err
}

func (p *program) printFinding(f doctor.Finding) error {
	source := ""
	if f.Source != "" {
		source = terminal.Clean(f.Source) + ": "
	}
	_, err := fmt.Fprintf(p.Stdout, "%-7s  %s: %s%s\n", f.Severity, f.Check, source, f.Problem)
	if f.Evidence != "" {
		_, err = fmt.Fprintf(p.Stdout, "         found: %s\n", terminal.Clean(f.Evidence))
	}
	if f.Remedy != "" {
		_, err = fmt.Fprintf(p.Stdout, "         do: %s\n", terminal.Clean(f.Remedy))
	}
	return err
}
