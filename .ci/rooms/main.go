package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/tools/go/packages"
)

// maxLines is the largest number of lines of code that a file may have.
const maxLines = 300

func main() {
	os.Exit(run(".", os.Args[1:], os.Stdout))
}

// run reports on the packages that match the patterns in dir, and returns the exit status.
func run(dir string, patterns []string, w io.Writer) int {
	found, files, err := look(dir, patterns)
	switch {
	case err != nil:
		fmt.Fprintln(w, err)
		return 2
	case len(found) == 0:
		fmt.Fprintf(w, "rooms: %d files, read in one direction\n", files)
		return 0
	}
	for _, f := range found {
		fmt.Fprintln(w, f)
	}
	fmt.Fprintln(w, "rooms: move what a lower file needs down into it, or into a file below both; pass a function instead of calling back up")
	return 1
}

func look(dir string, patterns []string) (found []string, files int, err error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports | packages.NeedDeps,
		Dir: dir,
		Env: append(os.Environ(), "GOOS=linux", "GOARCH=amd64"), // the same files on every machine
	}, patterns...)
	if err != nil {
		return nil, 0, fmt.Errorf("rooms: cannot load the packages: %w", err)
	}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, 0, fmt.Errorf("rooms: the packages do not build, fix them first: %w", p.Errors[0])
		}
		g, err := newGraph(p)
		if err != nil {
			return nil, 0, err
		}
		files += len(g.files)
		found = append(found, g.findings()...)
	}
	if files == 0 {
		return nil, 0, errors.New("rooms: no packages: name some, in the module's root")
	}
	return found, files, nil
}

func readFile(name string) ([]byte, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("rooms: cannot read a file: %w", err)
	}
	return b, nil
}
