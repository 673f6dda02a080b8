package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	os.Exit(run(".", os.Args[1:], os.Stdout))
}

// run runs the command that the arguments name in the repository in dir, and returns the
// exit status.
func run(dir string, args []string, w io.Writer) int {
	var err error
	switch dry := len(args) == 2 && args[0] == "-n"; {
	case slices.Equal(args, []string{"check"}):
		err = check(dir, w)
	case slices.Equal(args, []string{"tidy"}):
		err = tidy(dir)
	case dry || len(args) == 1 && strings.HasPrefix(args[0], "v"):
		err = release(dir, args[len(args)-1], dry, w)
	default:
		fmt.Fprintln(w, "usage: go run ./.ci/release check | tidy | [-n] VERSION, in the root's folder")
		return 2
	}
	if err != nil {
		fmt.Fprintln(w, "release:", err)
		return 1
	}
	return 0
}

// check reports why users could not install a module.
func check(dir string, w io.Writer) error {
	r, err := open(dir)
	if err != nil {
		return err
	}
	errs := []error{r.checkWork(), r.checkImports()}
	for _, m := range r.modules {
		errs = append(errs, r.checkTidy(m))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintf(w, "release: %d modules beside the root, which require %s\n", len(r.modules), r.version)
	return nil
}

// tidy rewrites the go.mod and go.sum of every module but the root.
func tidy(dir string) error {
	r, err := open(dir)
	if err != nil {
		return err
	}
	for _, m := range r.modules {
		mod, sum, err := r.tidied(m)
		if err == nil {
			err = errors.Join(os.WriteFile(m.file("go.mod"), mod, 0o644), os.WriteFile(m.file("go.sum"), sum, 0o644))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
