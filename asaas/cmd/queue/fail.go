package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/asaas"
)

// complain prints why the command failed; as JSON, too, where that is wanted.
func (p *program) complain(text string, status int) {
	fmt.Fprintf(p.complaints, "%s: %s\n", p.Name, text)
	if p.json {
		_ = p.printLine(failed{text, status}) // the exit status says it, too
	}
}

// failed is a failure as JSON.
type failed struct {
	Error string `json:"error"`
	Exit  int    `json:"exit"`
}

// told is an error for an operator: what to do, without what is called how in
// the library.
func (p *program) told(ctx context.Context, err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*asaas.APIError](err); ok {
		text = strings.Replace(text, e.Op+"("+e.WebhookID+"): ", "", 1)
		text = strings.Replace(text, e.Op+": ", "", 1)
	}
	for _, name := range []string{"asaas: ", "Recover(" + p.id + "): ", "idem: "} {
		text = strings.Replace(text, name, "", 1)
	}
	if ctx.Err() == nil {
		return text
	}
	if !slices.Contains(commands[p.command].flags, "yes") { // it only reads
		text = "nothing was changed: " + text
	}
	return strings.ReplaceAll(text, context.Canceled.Error(), context.Cause(ctx).Error()) // which signal it was
}

// changing does a change, and notes in its error what became of it.
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

// checkEnvironment tells which flag a key needs.
func (p *program) checkEnvironment(key string) error {
	switch {
	case !p.sandbox && strings.HasPrefix(key, "$aact_hmlg_"):
		return errors.New("ASAAS_API_KEY is a key of the sandbox: give --sandbox, or set a key of production, which begins with $aact_prod_")
	case p.sandbox && strings.HasPrefix(key, "$aact_prod_"):
		return errors.New("ASAAS_API_KEY is a key of production: leave --sandbox out, or set a key of the sandbox, which begins with $aact_hmlg_")
	}
	return nil
}
