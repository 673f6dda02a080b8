package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// findDrift compares saved bodies with a spec: it prints what the spec does not
// know, writes an overlay that adds it, and returns an error if there is any.
func findDrift(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("drift", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the usage text says it
	specPath := flags.String("spec", "spec/asaas.yaml", "")
	overlayPath := flags.String("overlay", "", "")
	var with []string
	flags.Func("with", "", func(path string) error { with = append(with, path); return nil })
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		return incomparable{errors.New(usage)}
	}
	s, err := load(*specPath, with...)
	if err != nil {
		return incomparable{err}
	}
	found, err := s.compare(flags.Args())
	if err != nil {
		return incomparable{err}
	}
	if len(found) == 0 {
		return nil
	}
	if err := s.explain(found, out, *overlayPath); err != nil {
		return incomparable{err}
	}
	return fmt.Errorf("gen: %s does not know what is listed: %d differences", s.name, len(found))
}

// explain prints what was found, and proposes to change the spec.
func (s *spec) explain(found []*difference, out io.Writer, overlayPath string) error {
	proposal, wrong := s.propose(found)
	if err := printTable(out, found); err != nil {
		return fmt.Errorf("gen: cannot print the table: %w", err)
	}
	if wrong != nil {
		return wrong
	}
	return proposal.save(overlayPath)
}

// compare finds the differences between the bodies in files and the spec.
func (s *spec) compare(paths []string) ([]*difference, error) {
	if err := s.lint(); err != nil {
		return nil, err
	}
	f := newFinder(s)
	for _, path := range paths {
		if err := eachBody(path, f.body); err != nil {
			return nil, err
		}
	}
	return f.differences(), nil
}

// eachBody reads a file of one JSON body, or of many.
func eachBody(path string, do func(any)) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("gen: cannot read the bodies, check the path: %w", err)
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.UseNumber() // 10.0 is not 10 for who guesses a type
	for {
		var v any
		switch err := decoder.Decode(&v); err {
		case nil:
			do(v)
		case io.EOF:
			return nil
		default:
			return fmt.Errorf("gen: %s is not JSON, give files of one body each, or one per line: %w", path, err)
		}
	}
}

func printTable(out io.Writer, found []*difference) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "EVENT\tPATH\tKIND\tCOUNT\tCHANGE")
	for _, d := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", orDash(d.EventType), orDash(d.Path), d.Kind, d.Count, d.change())
	}
	return w.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// change tells who changes the spec.
func (d *difference) change() string {
	if d.proposed {
		return "in the overlay"
	}
	return "by hand"
}
