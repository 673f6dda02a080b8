package idemcmd

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem/doctor"
)

// doctor prints what it finds.
func (p *program) doctor(ctx context.Context) error {
	findings, err := doctor.Check(ctx, p.pool, p.receivers...)
	if err != nil {
		return err
	}
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
		return errSaid
	case !p.json && len(findings) == 0:
		_, err = fmt.Fprintln(p.Stdout, "All is well.")
	}
	return err
}

func (p *program) printFinding(f doctor.Finding) error {
	source := ""
	if f.Source != "" {
		source = clean(f.Source) + ": "
	}
	_, err := fmt.Fprintf(p.Stdout, "%-7s  %s: %s%s\n", f.Severity, f.Check, source, f.Problem)
	if f.Evidence != "" {
		_, err = fmt.Fprintf(p.Stdout, "         found: %s\n", clean(f.Evidence))
	}
	if f.Remedy != "" {
		_, err = fmt.Fprintf(p.Stdout, "         do: %s\n", clean(f.Remedy))
	}
	return err
}
