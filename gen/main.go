package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/paghooks/paghooks/gen/drift"
	"github.com/paghooks/paghooks/gen/spec"
	"github.com/paghooks/paghooks/gen/upstream"
)

const usage = `usage: go run github.com/paghooks/paghooks/gen -spec SPEC [-overlay FILE]... -package DIR
       go run github.com/paghooks/paghooks/gen drift -spec SPEC [-overlay FILE]... FILE...
       go run github.com/paghooks/paghooks/gen upstream -spec SPEC [-overlay FILE]... DOCUMENT DIR

	-spec     makes the package in the directory DIR, and DIR/DIRtest for its
	          tests, of the OpenAPI document SPEC; OpenAPI overlays change SPEC
	          before that, in their order
	drift     prints what is in saved bodies, one in a FILE or one per line,
	          and is not in SPEC; the exit status is 1 if there is anything
	upstream  writes SPEC and the provider's own OpenAPI DOCUMENT in one form to
	          DIR/spec.json and DIR/provider.json, for oasdiff to compare`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
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
		return alignUpstream(args)
	default:
		return fmt.Errorf("gen: there is no command %q\n\n%s", command, usage)
	}
}

// makePackage writes nothing unless everything is right.
func makePackage(args []string) error {
	flags := newFlags()
	dir := flags.String("package", "", "")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || flags.spec == "" || *dir == "" {
		return errors.New(usage)
	}
	files, s, err := render(flags.spec, *dir, flags.overlays...)
	if s != nil {
		for _, w := range s.Warnings() {
			fmt.Fprintln(os.Stderr, "gen: warning:", w)
		}
	}
	if err != nil {
		return err
	}
	return writeAll(files)
}

func findDrift(args []string, out io.Writer) error {
	flags := newFlags()
	if err := flags.Parse(args); err != nil || flags.spec == "" || flags.NArg() == 0 {
		return errors.New(usage)
	}
	s, err := spec.Load(flags.spec, flags.overlays...)
	if err != nil {
		return err
	}
	switch n, err := drift.Report(out, s, flags.Args()); {
	case err != nil:
		return err
	case n > 0:
		return fmt.Errorf("gen: %s does not know what is listed: %d differences", s.Name, n)
	}
	return nil
}

func alignUpstream(args []string) error {
	flags := newFlags()
	if err := flags.Parse(args); err != nil || flags.spec == "" || flags.NArg() != 2 {
		return errors.New(usage)
	}
	s, err := spec.Load(flags.spec, flags.overlays...)
	if err != nil {
		return err
	}
	document, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return fmt.Errorf("gen: cannot read the provider's document, check its path: %w", err)
	}
	ours, theirs, err := upstream.Align(s, document)
	if err != nil {
		return err
	}
	dir := flags.Arg(1)
	return writeAll([]file{{filepath.Join(dir, "spec.json"), ours}, {filepath.Join(dir, "provider.json"), theirs}})
}

// flags are the flags that all commands share.
type flags struct {
	*flag.FlagSet
	spec     string
	overlays []string
}

func newFlags() *flags {
	f := &flags{FlagSet: flag.NewFlagSet("", flag.ContinueOnError)}
	f.SetOutput(io.Discard) // the usage text says it
	f.StringVar(&f.spec, "spec", "", "")
	f.Func("overlay", "", func(path string) error { f.overlays = append(f.overlays, path); return nil })
	return f
}

// file is a file that a command writes.
type file struct {
	path    string
	content []byte
}

func writeAll(files []file) error {
	for _, f := range files {
		if err := write(f); err != nil {
			return err
		}
	}
	return nil
}

// write does not touch a file that is right, so that build caches, which look at its time, stay
// valid.
func write(f file) error {
	if old, err := os.ReadFile(f.path); err == nil && bytes.Equal(old, f.content) {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(f.path), 0o755)
	if err == nil {
		err = os.WriteFile(f.path, f.content, 0o644)
	}
	if err != nil {
		return fmt.Errorf("gen: cannot write the files, see what is in the way: %w", err)
	}
	return nil
}
