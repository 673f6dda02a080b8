package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/command"
)

// told is an error for an operator: the remedy, without the names of functions in
// the library.
func (p *program) told(ctx context.Context, err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*asaas.APIError](err); ok {
		text = strings.Replace(text, e.Op+"("+e.WebhookID+"): ", "", 1)
		text = strings.Replace(text, e.Op+": ", "", 1)
	}
	for _, name := range []string{"asaas: ", "Recover(" + p.id + "): ", "PlanWebhook: ", "Apply: ", "idem: "} {
		text = strings.Replace(text, name, "", 1)
	}
	if ctx.Err() != nil && p.verb != nil && !slices.Contains(p.verb.flags, "yes") { // it only reads
		text = "nothing was changed: " + text
	}
	return text
}

// changing does a change, and notes its fate in its error.
func changing(what string, do func() error) error {
	err := do()
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*asaas.APIError](err); ok && e.Outcome == asaas.CallUnknown {
		return fmt.Errorf("it is not known whether %s: %w", what, err)
	}
	return fmt.Errorf("nothing was changed: %w", err)
}

// checkEnvironment returns an error for a key that needs the other -sandbox.
func (p *program) checkEnvironment(key string) error {
	switch {
	case !p.sandbox && strings.HasPrefix(key, "$aact_hmlg_"):
		return command.Usage("ASAAS_API_KEY is a key of the sandbox: give -sandbox, or set a key of production, which begins with $aact_prod_")
	case p.sandbox && strings.HasPrefix(key, "$aact_prod_"):
		return command.Usage("ASAAS_API_KEY is a key of production: leave -sandbox out, or set a key of the sandbox, which begins with $aact_hmlg_")
	}
	return nil
}
