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
)

const usage = `usage: go run github.com/paghooks/paghooks/gen@VERSION -spec SPEC [-overlay FILE]... -package DIR
       go run github.com/paghooks/paghooks/gen@VERSION drift -spec SPEC [-overlay FILE]... FILE...

	-spec  makes the package in the directory DIR, and DIR/DIRtest for its
	       tests, of the OpenAPI document SPEC; OpenAPI overlays change SPEC
	       before that, in their order
	drift  prints what is in saved bodies, one in a FILE or one per line,
	       and is not in SPEC; the exit status is 1 if there is anything`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	command := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	var overlays []string
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the usage text says it
	specPath, dir := flags.String("spec", "", ""), flags.String("package", "", "")
	flags.Func("overlay", "", func(path string) error { overlays = append(overlays, path); return nil })
	if err := flags.Parse(args); err != nil || *specPath == "" || (command == "") != (*dir != "") {
		return errors.New(usage)
	}
	s, err := load(*specPath, overlays...)
	if err != nil {
		return err
	}
	switch n := flags.NArg(); {
	case command == "" && n == 0:
		return makePackage(s, *dir)
	case command == "drift" && n > 0:
		return findDrift(s, flags.Args(), out)
	}
	return errors.New(usage)
}

// load reads a spec, and refuses one that is wrong.
func load(path string, overlays ...string) (*spec.Spec, error) {
	s, err := spec.Load(path, overlays...)
	if err == nil {
		err = s.Lint()
	}
	return s, err
}

// makePackage writes nothing unless everything is right.
func makePackage(s *spec.Spec, dir string) error {
	for _, w := range s.Warnings() {
		fmt.Fprintln(os.Stderr, "gen: warning:", w)
	}
	files, err := render(s, dir)
	if err != nil {
		return err
	}
	return writeAll(files)
}

func findDrift(s *spec.Spec, bodies []string, out io.Writer) error {
	n, err := drift.Report(out, s, bodies)
	if err == nil && n > 0 {
		err = fmt.Errorf("gen: %s does not know what is listed: %d differences", s.Name, n)
	}
	return err
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
