package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"

	"github.com/paghooks/paghooks/gen/drift"
	"github.com/paghooks/paghooks/gen/spec"
	"github.com/paghooks/paghooks/gen/upstream"
)

// comparison is the command line of a command that compares a spec.
type comparison struct {
	*flag.FlagSet
	spec *string
	with []string
}

func newComparison() *comparison {
	c := &comparison{FlagSet: flag.NewFlagSet("", flag.ContinueOnError)}
	c.SetOutput(io.Discard) // the usage text says it
	c.spec = c.String("spec", "spec/asaas.yaml", "")
	return c
}

// load reads the arguments, with up to most files behind the flags, and the spec
// that they name.
func (c *comparison) load(args []string, least, most int) (*spec.Spec, error) {
	if err := c.Parse(args); err != nil || c.NArg() < least || c.NArg() > most || len(args) == 0 {
		return nil, errors.New(usage)
	}
	return spec.Load(*c.spec, c.with...)
}

func findDrift(args []string, out io.Writer) error {
	c := newComparison()
	overlay := c.String("overlay", "", "")
	c.Func("with", "", func(path string) error { c.with = append(c.with, path); return nil })
	s, err := c.load(args, 1, math.MaxInt)
	if err != nil {
		return incomparable{err}
	}
	switch n, err := drift.Report(out, s, c.Args(), *overlay); {
	case err != nil:
		return incomparable{err}
	case n > 0:
		return fmt.Errorf("gen: %s does not know what is listed: %d differences", s.Name, n)
	}
	return nil
}

func compareUpstream(ctx context.Context, args []string, out io.Writer) error {
	c := newComparison()
	s, err := c.load(args, 0, 1)
	if err != nil {
		return incomparable{err}
	}
	switch n, err := upstream.Report(ctx, out, s, c.Arg(0)); {
	case err != nil:
		return incomparable{err}
	case n > 0:
		return fmt.Errorf("gen: differences between %s and the document: %d. Follow it in the spec, "+
			"or mark what is delivered without being in it with %s", s.Name, n, upstream.Mark)
	}
	return nil
}
