package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

const usage = `usage: go run github.com/paghooks/paghooks/gen -spec SPEC [-overlay FILE]... -package DIR
       go run github.com/paghooks/paghooks/gen drift [-spec SPEC] [-with FILE]... [-overlay OUT] FILE...
       go run github.com/paghooks/paghooks/gen upstream [-spec SPEC] [FILE-or-URL]

	-spec     makes the package in the directory DIR, and DIR/DIRtest for its
	          tests, of the OpenAPI document SPEC; OpenAPI overlays change SPEC
	          before that, in their order
	drift     prints what is in saved bodies, one in a FILE or one per line,
	          and is not in SPEC, spec/asaas.yaml by default, with the OpenAPI
	          overlays named; writes an overlay that adds it to OUT; the exit
	          status is 1 if there is anything, 2 if it could not compare
	upstream  compares SPEC, spec/asaas.yaml by default, with the provider's
	          own OpenAPI document, the one that its x-upstream names unless
	          it is given, and prints what is new, gone or changed there; the
	          exit status is 1 if anything is, 2 if it could not compare`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(status(err))
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	if strings.HasPrefix(args[0], "-") {
		return makePackage(args)
	}
	switch command, args := args[0], args[1:]; command {
	case "drift":
		return findDrift(args, out)
	case "upstream":
		return compareUpstream(context.Background(), args, out)
	default:
		return fmt.Errorf("gen: there is no command %q\n\n%s", command, usage)
	}
}

// incomparable is the error of a comparison that could not be made.
type incomparable struct{ error }

func (i incomparable) Unwrap() error { return i.error }

// status is the exit status of the program.
func status(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(incomparable)):
		return 2
	}
	return 1
}

// makePackage reads the arguments of a package that is to be made.
func makePackage(args []string) error {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the usage text says it
	path, dir := flags.String("spec", "", ""), flags.String("package", "", "")
	var overlays []string
	flags.Func("overlay", "", func(path string) error { overlays = append(overlays, path); return nil })
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || *path == "" || *dir == "" {
		return errors.New(usage)
	}
	return generate(*path, *dir, overlays...)
}

// generate writes nothing unless everything is right.
func generate(specPath, dir string, overlays ...string) error {
	files, warnings, err := render(specPath, dir, overlays...)
	for _, w := range warnings {
		fmt.Fprintln(os.Stderr, "gen: warning:", w)
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := write(f); err != nil {
			return err
		}
	}
	return nil
}
