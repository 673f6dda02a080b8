package drift

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/paghooks/paghooks/gen/spec"
)

// Report prints how the bodies in files differ from a spec, and returns how
// often they do. It writes an overlay that adds all that the spec does not know,
// unless overlayPath is "" or nothing can be added.
func Report(out io.Writer, s *spec.Spec, files []string, overlayPath string) (differences int, err error) {
	found, err := compare(s, files)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	proposal, wrong := propose(s, found)
	if err := printTable(out, found); err != nil {
		return 0, fmt.Errorf("gen: cannot print the table: %w", err)
	}
	if wrong != nil {
		return 0, wrong
	}
	return len(found), proposal.save(overlayPath)
}

// compare finds the differences between the bodies in files and the spec.
func compare(s *spec.Spec, paths []string) ([]*difference, error) {
	if err := s.Lint(); err != nil {
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
	decoder.UseNumber() // 10.0 is not 10 for a guess of a type
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

// change names the one that changes the spec, the overlay or a person.
func (d *difference) change() string {
	if d.proposed {
		return "in the overlay"
	}
	return "by hand"
}
