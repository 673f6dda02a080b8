// Release keeps the modules of this repository such that each can be installed, and
// makes versions of them:
//
//	go run ./.ci/release check     # reports modules whose go.mod or go.sum users could not install
//	go run ./.ci/release tidy      # is go mod tidy for every module
//	go run ./.ci/release -n v0.2.0 # shows the commit and the tags that the next line makes
//	go run ./.ci/release v0.2.0    # commits and tags a version, for you to look at and to push
//
// The root is one module, and go.work lists the others. Those in idem/…/idem… and gen are for
// users. A version has all of them, and a tag for the root and each module for users, on
// one commit. Modules require that version of each other, without replace, as users need
// it. go.work lets them build here, also before that version exists: no go.sum has the
// sums of this repository's own modules.
//
// All modules require the same versions of others, those that go.work selects: so what is tested here is what
// users get, and is compiled once. go mod tidy ignores go.work, and would ask a proxy for a version that does not
// exist: hence tidy. This program needs go.work, too: golang.org/x/mod is none of the root's requirements.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
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

// check reports modules that are not tidy, or require what users cannot get.
func check(dir string, w io.Writer) error {
	r, err := open(dir)
	if err != nil {
		return err
	}
	versions := r.highest()
	var errs []error
	for _, m := range r.all() {
		tidy, err := r.tidied(m, versions)
		errs = append(errs, err)
		for name, want := range tidy {
			if got, err := os.ReadFile(m.file(name)); err != nil || string(got) != want {
				errs = append(errs, err, fmt.Errorf("%s is not tidy: go run ./.ci/release tidy", path.Join(m.dir, name)))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := r.checkSelected(); err != nil {
		return err
	}
	fmt.Fprintf(w, "release: %d modules beside the root, which require %s\n", len(r.modules), r.version)
	return nil
}

// tidy rewrites the go.mod and go.sum of every module.
func tidy(dir string) error {
	r, err := open(dir)
	if err != nil {
		return err
	}
	versions := r.highest()
	for _, m := range r.all() {
		tidy, err := r.tidied(m, versions)
		if err != nil {
			return err
		}
		for name, text := range tidy {
			if err := os.WriteFile(m.file(name), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
