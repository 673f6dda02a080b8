package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// repository has the modules that go.work lists.
type repository struct {
	dir     string // absolute
	root    string // the path of the root module
	version string // of each other that the modules require
	work    *modfile.WorkFile
	top     *module // the root
	modules []*module
}

// module is the root, or a module in one of its folders.
type module struct {
	repository *repository
	dir        string // with slashes, below the root; "." is the root
	mod        *modfile.File
}

func (m *module) file(name string) string {
	return filepath.Join(m.repository.dir, filepath.FromSlash(m.dir), name)
}

func (m *module) path() string { return path.Join(m.repository.root, m.dir) }

// isForUsers reports whether users import the module, or run it.
func (m *module) isForUsers() bool {
	return m.dir == generator || strings.HasPrefix(m.dir, "idem/") && strings.HasPrefix(path.Base(m.dir), "idem")
}

// generator is the module that users run. It imports no other of this repository.
const generator = "gen"

// open reads the modules.
func open(dir string) (*repository, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := &repository{dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, "go.work"))
	if err != nil {
		return nil, fmt.Errorf("run it in the root's folder: %w", err)
	}
	if r.work, err = modfile.ParseWork("go.work", text, nil); err != nil {
		return nil, err
	}
	for _, replaced := range r.work.Replace {
		if replaced.New.Path == "." {
			r.root, r.version = replaced.Old.Path, replaced.Old.Version
		}
	}
	if r.version == "" {
		return nil, errors.New("go.work replaces no version of the root: add the version that the modules require")
	}
	for _, use := range r.work.Use {
		m := &module{repository: r, dir: path.Clean(use.Path)}
		if m.mod, err = parse(m.file("go.mod")); err != nil {
			return nil, err
		}
		if m.mod.Module.Mod.Path != m.path() {
			return nil, fmt.Errorf("%s/go.mod has the path %s, by which its tags are not found: it must be %s", m.dir, m.mod.Module.Mod.Path, m.path())
		}
		if m.dir == "." {
			r.top = m
		} else {
			r.modules = append(r.modules, m)
		}
	}
	if r.top == nil {
		return nil, errors.New("go.work does not use the root: run go work use . there")
	}
	return r, r.checkRequired()
}

// all are the root and the modules below.
func (r *repository) all() []*module { return append([]*module{r.top}, r.modules...) }

// checkRequired returns an error if a module for users requires one that has no versions.
func (r *repository) checkRequired() (err error) {
	versions := map[string]bool{r.root: true}
	for _, m := range r.modules {
		versions[m.path()] = m.isForUsers()
	}
	for _, m := range r.modules {
		for _, required := range m.mod.Require {
			if path := required.Mod.Path; m.isForUsers() && r.has(path) && !versions[path] {
				err = errors.Join(err, fmt.Errorf("%s requires %s, which is not for users and has no version", m.dir, path))
			}
		}
	}
	return err
}

// has reports whether a module is the root or one beside it.
func (r *repository) has(path string) bool {
	return path == r.root || strings.HasPrefix(path, r.root+"/")
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

// checkSelected returns an error if go.work selects another version of a module of others than a module requires: it
// would be tested here with that, and users get the one that is required.
func (r *repository) checkSelected() error {
	lines, err := command(r.dir, []string{"GOWORK=" + filepath.Join(r.dir, "go.work")},
		"go", "list", "-m", "-f", "{{if not .Main}}{{.Path}} {{.Version}}{{end}}", "all")
	selected := make(map[string]string)
	for line := range strings.Lines(lines) {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			selected[name] = version
		}
	}
	for _, m := range r.all() {
		for _, required := range m.mod.Require {
			name, version := required.Mod.Path, required.Mod.Version
			if other := selected[name]; other != "" && other != version && !r.has(name) {
				err = errors.Join(err, fmt.Errorf("%s requires %s %s, and go.work selects %s: require that, and run go run ./.ci/release tidy",
					path.Join(m.dir, "go.mod"), name, version, other))
			}
		}
	}
	return err
}

// highest returns the highest version of each module of others that a module requires.
func (r *repository) highest() map[string]string {
	versions := make(map[string]string)
	for _, m := range r.all() {
		for _, required := range m.mod.Require {
			if path, version := required.Mod.Path, required.Mod.Version; !r.has(path) && semver.Compare(version, versions[path]) > 0 {
				versions[path] = version
			}
		}
	}
	return versions
}

// align has a go.mod require these versions of what it requires now, and reports whether it did not before.
func align(file *modfile.File, versions map[string]string) (changed bool, err error) {
	for _, required := range file.Require {
		if version := versions[required.Mod.Path]; version != "" && version != required.Mod.Version {
			changed, err = true, errors.Join(err, file.AddRequire(required.Mod.Path, version))
		}
	}
	return changed, err
}

// tidied returns a module's go.mod and go.sum as go mod tidy makes them where the other modules of the repository are
// as they are here, and those of others have these versions.
func (r *repository) tidied(m *module, versions map[string]string) (map[string]string, error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	for _, other := range r.all() {
		if other != m {
			err = errors.Join(err, m.mod.AddReplace(other.path(), "", other.file(""), ""))
		}
	}
	mod, sum := filepath.Join(folder, "go.mod"), filepath.Join(folder, "go.sum")
	before, reading := os.ReadFile(m.file("go.sum"))
	if err := errors.Join(err, reading, os.WriteFile(sum, before, 0o644)); err != nil {
		return nil, err
	}
	file := m.mod
	_, err = align(file, versions)
	for changed := true; changed; { // go mod tidy adds what is required by what is required
		if err := errors.Join(err, write(mod, file)); err != nil {
			return nil, err
		}
		if _, err := command(m.file(""), []string{"GOWORK=off"}, "go", "mod", "tidy", "-modfile="+mod); err != nil {
			return nil, fmt.Errorf("%s: %w", m.dir, err)
		}
		if file, err = parse(mod); err != nil {
			return nil, err
		}
		changed, err = align(file, versions)
	}
	for _, replaced := range slices.Clone(file.Replace) {
		if r.has(replaced.Old.Path) {
			err = errors.Join(err, file.DropReplace(replaced.Old.Path, ""))
		}
	}
	err = errors.Join(err, r.require(file, r.version), write(mod, file))
	tidy := map[string]string{}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, reading := os.ReadFile(filepath.Join(folder, name))
		err, tidy[name] = errors.Join(err, reading), string(text)
	}
	return tidy, err
}

func parse(name string) (*modfile.File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, text, nil)
}

func write(name string, file *modfile.File) error {
	file.Cleanup()
	text, err := file.Format()
	return errors.Join(err, os.WriteFile(name, text, 0o644))
}

func (r *repository) git(args ...string) (string, error) {
	return command(r.dir, nil, "git", args...)
}

// command runs a program with additional settings in its environment, and returns its
// output.
func command(dir string, env []string, program string, args ...string) (string, error) {
	c := exec.Command(program, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var complaints strings.Builder
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", program, strings.Join(args, " "), err, out, complaints.String())
	}
	return strings.TrimSpace(string(out)), nil
}
