package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// repository has the modules of a folder under git.
type repository struct {
	dir     string // absolute
	root    string // the path of the root module
	version string // of each other that the modules require
	modules []*module
}

// module is a module that is not the root.
type module struct {
	repository *repository
	dir        string // with slashes, below the root
	path       string
	requires   []string // the modules of this repository
}

func (m *module) file(name string) string {
	return filepath.Join(m.repository.dir, filepath.FromSlash(m.dir), name)
}

// isForUsers reports whether users install the module.
func (m *module) isForUsers() bool {
	return strings.HasPrefix(m.dir, "idem/") && strings.HasPrefix(path.Base(m.dir), "idem")
}

// open reads the modules, each after those that it requires.
func open(dir string) (*repository, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := &repository{dir: dir}
	root, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("run it in the root's folder: %w", err)
	}
	r.root = modfile.ModulePath(root)
	work, err := r.work()
	if err != nil {
		return nil, err
	}
	for _, replaced := range work.Replace {
		if replaced.Old.Path == r.root {
			r.version = replaced.Old.Version
		}
	}
	if r.version == "" {
		return nil, fmt.Errorf("go.work replaces no version of %s: add the version that the modules require", r.root)
	}
	files, err := r.files("*/go.mod")
	for _, file := range files {
		m, err := r.read(path.Dir(file))
		if err != nil {
			return nil, err
		}
		r.modules = append(r.modules, m)
	}
	return r, errors.Join(err, r.sort())
}

func (r *repository) read(dir string) (*module, error) {
	m := &module{repository: r, dir: dir, path: path.Join(r.root, dir)}
	text, err := os.ReadFile(m.file("go.mod"))
	if err != nil {
		return nil, err
	}
	file, err := modfile.Parse(path.Join(dir, "go.mod"), text, nil)
	if err != nil {
		return nil, err
	}
	if file.Module.Mod.Path != m.path {
		return nil, fmt.Errorf("%s/go.mod has the path %s, by which its tags are not found: it must be %s", dir, file.Module.Mod.Path, m.path)
	}
	for _, required := range file.Require {
		if r.has(required.Mod.Path) {
			m.requires = append(m.requires, required.Mod.Path)
		}
	}
	return m, nil
}

// has reports whether a module is the root or one beside it.
func (r *repository) has(path string) bool {
	return path == r.root || strings.HasPrefix(path, r.root+"/")
}

// sort puts each module behind those that it requires.
func (r *repository) sort() error {
	var sorted []*module
	placed := map[string]bool{r.root: true}
	for len(sorted) < len(r.modules) {
		before := len(sorted)
		for _, m := range r.modules {
			if !placed[m.path] && !slices.ContainsFunc(m.requires, func(path string) bool { return !placed[path] }) {
				sorted, placed[m.path] = append(sorted, m), true
			}
		}
		if len(sorted) == before {
			return errors.New("modules require each other, or one that is not here: no order lets them be released")
		}
	}
	r.modules = sorted
	return nil
}

func (r *repository) work() (*modfile.WorkFile, error) {
	text, err := os.ReadFile(filepath.Join(r.dir, "go.work"))
	if err != nil {
		return nil, err
	}
	return modfile.ParseWork("go.work", text, nil)
}

// checkWork returns an error that names the modules that go.work lacks, and the versions that it does not replace.
func (r *repository) checkWork() error {
	work, err := r.work()
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range r.modules {
		if !slices.ContainsFunc(work.Use, func(u *modfile.Use) bool { return u.Path == "./"+m.dir }) {
			errs = append(errs, fmt.Errorf("go.work does not use ./%s: add it, or go commands fail there", m.dir))
		}
		for _, path := range m.requires {
			if !slices.ContainsFunc(work.Replace, func(p *modfile.Replace) bool { return p.Old.Path == path && p.Old.Version == r.version }) {
				errs = append(errs, fmt.Errorf("go.work does not replace %s %s, which %s requires: add it", path, r.version, m.dir))
			}
		}
	}
	return errors.Join(errs...)
}

// checkImports returns an error that names the files of modules for users that import internal packages of another
// module, which may have another name in its next version. Tests count, because a user's
// go mod tidy reads them.
func (r *repository) checkImports() error {
	var errs []error
	for _, m := range r.modules {
		if !m.isForUsers() {
			continue
		}
		files, err := r.files(m.dir + "/*.go")
		if err != nil {
			return err
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(r.dir, name), nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, imported := range file.Imports {
				path, _ := strconv.Unquote(imported.Path.Value)
				if r.has(path) && !strings.HasPrefix(path, m.path+"/") && slices.Contains(strings.Split(path, "/"), "internal") {
					errs = append(errs, fmt.Errorf("%s imports %s, which may be renamed in any version: use exported names", name, path))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// files lists the files that match a pattern and are in git or could be added.
func (r *repository) files(pattern string) ([]string, error) {
	out, err := r.git("ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", pattern)
	var files []string
	for file := range strings.FieldsSeq(out) {
		if _, err := os.Stat(filepath.Join(r.dir, file)); err == nil { // not deleted
			files = append(files, file)
		}
	}
	return files, err
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
