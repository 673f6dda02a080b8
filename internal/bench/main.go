package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/paghooks/paghooks/internal/interrupt"
)

func main() {
	ctx, out := interrupt.Context(os.Stdout)
	os.Exit(run(ctx, os.Args[1:], out, os.Stderr))
}

// run returns the exit status: 0 if all is well, 1 if an event was lost, doubled
// or never acknowledged or the run could not be made, 2 if it is not understood.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	r, err := race(ctx, c, stderr)
	if r != nil {
		err = errors.Join(err, r.print(stdout, c.json))
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
	}
	if err != nil || !r.Correct {
		return 1
	}
	return 0
}
