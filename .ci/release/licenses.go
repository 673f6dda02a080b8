package main

import (
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// accepted are the licenses that a dependency of users may have, by SPDX.
var accepted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// known has a line for each dependency: its licenses with + between them, the begin of the
// SHA-256 of their text, and its module.
//
//go:embed licenses.txt
var known string

// dependency is a module of a third party.
type dependency struct {
	path, version string
	dir           string // in the module cache
}

// dependencies returns the modules that packages of a module need, without their tests.
func (r *repository) dependencies(dir string, env []string, packages ...string) (map[string]dependency, error) {
	const format = `{{with .Module}}{{.Path}}|{{.Version}}|{{.Dir}}{{end}}`
	out, err := command(dir, env, "go", append([]string{"list", "-deps", "-f", format}, packages...)...)
	if err != nil {
		return nil, err
	}
	found := map[string]dependency{}
	for line := range strings.Lines(out) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		if len(parts) == 3 && !r.has(parts[0]) {
			found[parts[0]] = dependency{parts[0], parts[1], parts[2]}
		}
	}
	return found, nil
}

// ofUsers returns the modules that users get with any package for them.
func (r *repository) ofUsers() (map[string]dependency, error) {
	env := []string{"GOWORK=" + filepath.Join(r.dir, "go.work")}
	all, err := r.dependencies(r.dir, env, "./idem/...", "./asaas/...", "./zeltapay/...")
	for _, m := range r.modules {
		if m.isForUsers() && err == nil {
			var found map[string]dependency
			found, err = r.dependencies(m.file(""), env, "./...")
			maps.Copy(all, found)
		}
	}
	return all, err
}

// texts returns a dependency's license, and the notices that go along with it.
func (d dependency) texts() (license, notices string, err error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return "", "", err
	}
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		isLicense := strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "LICENCE") || strings.HasPrefix(name, "COPYING")
		if entry.IsDir() || !isLicense && !strings.HasPrefix(name, "NOTICE") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(d.dir, entry.Name()))
		if err != nil {
			return "", "", err
		}
		if isLicense {
			license += string(text)
		} else {
			notices += string(text)
		}
	}
	if license == "" {
		return "", "", fmt.Errorf("%s has no file LICENSE: find out its license, or do without it", d.path)
	}
	return license, notices, nil
}

// spdx returns the license of a dependency, which must be known and accepted.
func (d dependency) spdx(known string) (string, error) {
	text, _, err := d.texts()
	if err != nil {
		return "", err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16]
	for line := range strings.Lines(known) {
		if words := strings.Fields(line); len(words) == 3 && words[1] == sum && words[2] == d.path {
			for one := range strings.SplitSeq(words[0], "+") {
				if !slices.Contains(accepted, one) {
					return "", fmt.Errorf("%s has the license %s, which is none of %s: do without it", d.path, one, strings.Join(accepted, ", "))
				}
			}
			return words[0], nil
		}
	}
	return "", fmt.Errorf("the license of %s is new or has changed: read it in %s, and put a line into .ci/release/licenses.txt: SPDX %s %[1]s", d.path, d.dir, sum)
}

// checkLicenses returns an error that names the dependencies of users with a license that is not
// in licenses.txt, or not accepted.
func checkLicenses(dir string, w io.Writer) error {
	r, err := open(dir)
	if err != nil {
		return err
	}
	all, err := r.ofUsers()
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(all)) {
		_, err := all[path].spdx(known)
		errs = append(errs, err)
	}
	for line := range strings.Lines(known) {
		if words := strings.Fields(line); len(words) == 3 && all[words[2]].path == "" {
			errs = append(errs, fmt.Errorf(".ci/release/licenses.txt has %s, which users do not need: delete its line", words[2]))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintf(w, "release: the licenses of %d modules are accepted\n", len(all))
	return nil
}

// noticesOf returns what must go along with a program: the licenses of all that is in it.
func noticesOf(all map[string]dependency) (string, error) {
	var b strings.Builder
	goroot, err := command(".", nil, "go", "env", "GOROOT")
	if err != nil {
		return "", err
	}
	goLicense, err := os.ReadFile(filepath.Join(goroot, "LICENSE"))
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "These programs contain code of others, under these licenses.\n\n=== Go, BSD-3-Clause\n\n%s", goLicense)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		d := all[path]
		spdx, err := d.spdx(known)
		if err != nil {
			return "", err
		}
		license, notices, err := d.texts()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n=== %s %s, %s\n\n%s%s", d.path, d.version, spdx, license, notices)
	}
	return b.String(), nil
}
