package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const header = "# The exported API, as it was accepted. To change it: bash .ci/api/accept"

// snapshot is the path of the accepted API, below the module's root.
var snapshot = filepath.Join(".ci", "api", "api.txt")

// guarded are the packages of the root that users import.
var guarded = []string{"./idem/...", "./asaas/...", "./zeltapay/..."}

func main() {
	modules, err := besides(".")
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	os.Exit(run(os.Args[1:], ".", append(guarded, modules...), os.Stdout))
}

// besides are the packages of the other modules that users install.
func besides(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "idem", "idem*", "go.mod"))
	var patterns []string
	for _, file := range files {
		patterns = append(patterns, "./"+path.Join("idem", filepath.Base(filepath.Dir(file)), "..."))
	}
	return patterns, err
}

// run executes the command of the first argument, for the module in dir, and returns
// the exit status.
func run(args []string, dir string, patterns []string, w io.Writer) int {
	now, err := surface(dir, patterns...)
	if err != nil {
		fmt.Fprintln(w, err)
		return 2
	}
	switch {
	case slices.Equal(args, []string{"check"}):
		return check(dir, now, w)
	case slices.Equal(args, []string{"accept"}):
		return accept(dir, now, w)
	}
	fmt.Fprintln(w, "usage: go run ./.ci/api check|accept, in the module's root")
	return 2
}

func check(dir string, now []string, w io.Writer) int {
	accepted, err := read(dir)
	if err != nil {
		fmt.Fprintln(w, err)
		return 2
	}
	if added := without(now, accepted); len(added) > 0 {
		fmt.Fprintf(w, "api: %d additions are not guarded yet: bash .ci/api/accept\n", len(added))
	}
	gone := without(accepted, now)
	if len(gone) == 0 {
		return 0
	}
	for _, fact := range gone {
		fmt.Fprintln(w, "- "+fact)
		for _, is := range without(now, accepted) {
			if subject(is) == subject(fact) {
				fmt.Fprintln(w, "+ "+is)
			}
		}
	}
	fmt.Fprintf(w, "api: %d incompatible changes: code that uses these does not build any more. Bring them back;\n"+
		"or, if they are meant, accept them with bash .ci/api/accept and tell them in CHANGELOG.md under Changed or Removed\n", len(gone))
	return 1
}

func accept(dir string, now []string, w io.Writer) int {
	text := header + "\n" + strings.Join(now, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(dir, snapshot), []byte(text), 0o644); err != nil {
		fmt.Fprintln(w, "api: cannot write the snapshot, run it in the module's root:", err)
		return 2
	}
	fmt.Fprintf(w, "api: %d facts are guarded now, see git diff %s\n", len(now), snapshot)
	return 0
}

func read(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, snapshot))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("api: there is no snapshot, make it in the module's root with bash .ci/api/accept: %w", err)
	case err != nil:
		return nil, fmt.Errorf("api: cannot read the snapshot: %w", err)
	}
	var facts []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			facts = append(facts, line)
		}
	}
	return facts, nil
}

// without is the facts that are not among others.
func without(facts, others []string) []string {
	known := make(map[string]bool, len(others))
	for _, f := range others {
		known[f] = true
	}
	return slices.DeleteFunc(slices.Clone(facts), func(f string) bool { return known[f] })
}

// subject is the name that a fact is about.
func subject(fact string) string {
	name, _, _ := strings.Cut(fact, ": ")
	return name
}
