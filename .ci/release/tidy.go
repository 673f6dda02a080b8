package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// tidied returns a module's go.mod and go.sum as go mod tidy makes them where the other
// modules of the repository are as they are here. The lines of go.sum about them stay.
func (r *repository) tidied(m *module) (mod, sum []byte, err error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(folder)
	file, sums, err := m.parse()
	if err != nil {
		return nil, nil, err
	}
	for _, other := range append([]*module{{repository: r, path: r.root}}, r.modules...) {
		if other != m {
			err = errors.Join(err, file.AddReplace(other.path, "", other.file(""), ""))
		}
	}
	ours, others := r.divide(sums)
	copied := filepath.Join(folder, "go.mod")
	err = errors.Join(err, write(copied, file), os.WriteFile(filepath.Join(folder, "go.sum"), []byte(others), 0o644))
	if err != nil {
		return nil, nil, err
	}
	if _, err := command(m.file(""), []string{"GOWORK=off"}, "go", "mod", "tidy", "-modfile="+copied); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", m.dir, err)
	}
	if mod, err = os.ReadFile(copied); err == nil {
		sum, err = os.ReadFile(filepath.Join(folder, "go.sum"))
	}
	if err != nil {
		return nil, nil, err
	}
	if file, err = modfile.Parse(copied, mod, nil); err != nil {
		return nil, nil, err
	}
	for _, replaced := range slices.Clone(file.Replace) {
		if r.has(replaced.Old.Path) {
			err = errors.Join(err, file.DropReplace(replaced.Old.Path, ""))
		}
	}
	if err = errors.Join(err, r.require(file, r.version)); err != nil {
		return nil, nil, err
	}
	mod, err = format(file)
	return mod, []byte(insert(string(sum), ours)), err
}

// checkTidy returns an error that says in which lines a module's go.mod and go.sum are not tidy.
func (r *repository) checkTidy(m *module) error {
	mod, sum, err := r.tidied(m)
	if err != nil {
		return err
	}
	var errs []error
	for name, want := range map[string][]byte{"go.mod": mod, "go.sum": sum} {
		got, err := os.ReadFile(m.file(name))
		if err != nil {
			return err
		}
		if string(got) != string(want) {
			errs = append(errs, fmt.Errorf("%s is not tidy: go run ./.ci/release tidy\n%s",
				path.Join(m.dir, name), changed(string(got), string(want))))
		}
	}
	return errors.Join(errs...)
}

// changed returns the lines that only one of two texts has.
func changed(is, ought string) string {
	var b strings.Builder
	for _, side := range []struct{ sign, text, other string }{{"-", is, ought}, {"+", ought, is}} {
		for line := range strings.Lines(side.text) {
			if !strings.Contains("\n"+side.other, "\n"+line) {
				b.WriteString(side.sign + line)
			}
		}
	}
	return b.String()
}

// parse returns a module's go.mod and the text of its go.sum.
func (m *module) parse() (*modfile.File, string, error) {
	mod, err := os.ReadFile(m.file("go.mod"))
	if err != nil {
		return nil, "", err
	}
	file, err := modfile.Parse(path.Join(m.dir, "go.mod"), mod, nil)
	if err != nil {
		return nil, "", err
	}
	sums, err := os.ReadFile(m.file("go.sum"))
	return file, string(sums), err
}

// require has a go.mod require a version of each module of this repository that it
// requires now.
func (r *repository) require(file *modfile.File, version string) (err error) {
	for _, required := range file.Require {
		if r.has(required.Mod.Path) {
			err = errors.Join(err, file.AddRequire(required.Mod.Path, version))
		}
	}
	return err
}

// divide divides the lines of a go.sum into those about modules of this repository and
// the others.
func (r *repository) divide(sums string) (ours, others string) {
	for line := range strings.Lines(sums) {
		if path, _, _ := strings.Cut(line, " "); r.has(path) {
			ours += line
		} else {
			others += line
		}
	}
	return ours, others
}

// insert inserts lines into a go.sum, where its order has them.
func insert(sums, lines string) string {
	subject, _, _ := strings.Cut(lines, " ")
	var before strings.Builder
	for line := range strings.Lines(sums) {
		if path, _, _ := strings.Cut(line, " "); path > subject {
			break
		}
		before.WriteString(line)
	}
	return before.String() + lines + sums[before.Len():]
}

func write(name string, file *modfile.File) error {
	text, err := format(file)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

func format(file *modfile.File) ([]byte, error) {
	file.Cleanup()
	return file.Format()
}
