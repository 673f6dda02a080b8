package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const usage = `usage: go run github.com/paghooks/paghooks/gen -spec SPEC -package NAME
       go run github.com/paghooks/paghooks/gen generate [-overlay FILE]... SPEC DIR
       go run github.com/paghooks/paghooks/gen drift [-spec SPEC] [-with FILE]... [-overlay OUT] FILE...
       go run github.com/paghooks/paghooks/gen upstream [-spec spec/asaas.yaml] FILE-or-URL

	-spec     makes the package NAME, in the directory NAME, of the OpenAPI
	          document SPEC, which has x-provider: nothing is written by hand
	generate  reads the OpenAPI document SPEC and writes types.gen.go,
	          events.gen.go and, if SPEC has paths, client_types.gen.go and
	          client_calls.gen.go into the package directory DIR, and the
	          bodies for tests, fixtures.gen.json, into DIR/DIRtest; OpenAPI
	          overlays change SPEC before that, in their order
	drift     prints what is in saved bodies, one in a FILE or one per line,
	          and is not in SPEC, spec/asaas.yaml by default, with the OpenAPI
	          overlays named; writes an overlay that adds it to OUT; the exit
	          status is 1 if there is anything, 2 if it could not compare
	upstream  compares the spec with Asaas's own OpenAPI document, and prints
	          what is new, gone or changed there; the exit status is 1 if
	          anything is, 2 if it could not compare`

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
	case "generate":
		return generateWith(args)
	case "drift":
		return findDrift(args, out)
	case "upstream":
		return compareUpstream(context.Background(), args, out)
	default:
		return fmt.Errorf("gen: there is no command %q\n\n%s", command, usage)
	}
}

// incomparable is why nothing could be compared.
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

// makePackage makes a whole package of a spec that has x-provider.
func makePackage(args []string) error {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the usage text says it
	path, name := flags.String("spec", "", ""), flags.String("package", "", "")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || *path == "" || *name == "" {
		return errors.New(usage)
	}
	if err := os.MkdirAll(*name, 0o755); err != nil {
		return fmt.Errorf("gen: cannot make the package directory: %w", err)
	}
	return generate(*path, *name)
}

// generateWith reads generate's arguments.
func generateWith(args []string) error {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the usage text says it
	var overlays []string
	flags.Func("overlay", "", func(path string) error { overlays = append(overlays, path); return nil })
	if err := flags.Parse(args); err != nil || flags.NArg() != 2 {
		return errors.New(usage)
	}
	return generate(flags.Arg(0), flags.Arg(1), overlays...)
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
		if dir := filepath.Base(filepath.Dir(f.path)); strings.HasSuffix(dir, "test") {
			_ = os.Mkdir(filepath.Dir(f.path), 0o755) // else write says what is wrong
		}
		if err := write(f); err != nil {
			return err
		}
	}
	return nil
}
