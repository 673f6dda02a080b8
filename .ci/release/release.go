package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// release makes a version in a clone, and moves it into the repository unless dry.
func release(dir, version string, dry bool, w io.Writer) error {
	r, err := open(dir)
	if err != nil {
		return err
	}
	if err := r.checkVersion(version); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	c, err := r.clone(filepath.Join(folder, "clone"), version)
	if err != nil {
		return err
	}
	tags, err := c.commit(folder, version)
	if err != nil {
		return err
	}
	said, err := c.git("show", "--stat", "--format=%h %s", "HEAD")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n\ntags: %s\n", said, strings.Join(tags, " "))
	if dry {
		fmt.Fprintln(w, "nothing is changed here: that was -n")
		return nil
	}
	if _, err := r.git("fetch", "--quiet", c.dir, "HEAD", "refs/tags/*:refs/tags/*"); err != nil {
		return err
	}
	if _, err := r.git("merge", "--quiet", "--ff-only", tags[0]); err != nil {
		return err
	}
	fmt.Fprintf(w, "look at it, then push all at once, so that no module is there without the root:\n\n"+
		"\tgit push --atomic origin HEAD %s\n\nto undo it before that: git tag -d %[1]s && git reset --keep HEAD^\n", strings.Join(tags, " "))
	return nil
}

// checkVersion returns an error if a version cannot be made of the repository as it is.
func (r *repository) checkVersion(version string) error {
	major := semver.Major(version)
	switch {
	case semver.Canonical(version) != version || semver.Build(version) != "":
		return fmt.Errorf("%q is no version: give one such as v0.2.0", version)
	case major != "v0" && major != "v1":
		return fmt.Errorf("%s needs module paths that end with /%s: see https://go.dev/ref/mod#major-version-suffixes", version, major)
	case semver.Compare(version, r.version) < 0:
		return fmt.Errorf("%s is before %s, which the modules require", version, r.version)
	}
	if changed, err := r.git("status", "--porcelain"); err != nil || changed != "" {
		return errors.Join(err, errors.New("files are not committed: commit them first, or stash them\n"+changed))
	}
	if tags, err := r.git("tag", "--list", version, "*/"+version); err != nil || tags != "" {
		return errors.Join(err, fmt.Errorf("%s is there already, and proxies never forget a version: choose another one\n%s", version, tags))
	}
	changes, err := os.ReadFile(filepath.Join(r.dir, "CHANGELOG.md"))
	if err == nil && !strings.Contains(string(changes), "\n## ["+version[1:]+"] - ") {
		err = fmt.Errorf("CHANGELOG.md has no changes of %s: put the heading ## [%s] - DATE below Unreleased, and an empty Unreleased above", version, version[1:])
	}
	return errors.Join(err, r.checkWork(), r.checkImports())
}

// clone returns a clone in which the modules require the version, and commits have the
// same author as here.
func (r *repository) clone(dir, version string) (*repository, error) {
	if _, err := r.git("clone", "--quiet", "--no-tags", r.dir, dir); err != nil {
		return nil, err
	}
	c, err := open(dir)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"user.name", "user.email"} {
		if value, err := r.git("config", key); err == nil {
			if _, err := c.git("config", key, value); err != nil {
				return nil, err
			}
		}
	}
	if err := errors.Join(c.workRequires(version), c.finishGuides()); err != nil {
		return nil, err
	}
	for _, m := range c.modules {
		file, sums, err := m.parse()
		if err != nil {
			return nil, err
		}
		_, others := c.divide(sums)
		err = errors.Join(c.require(file, version), write(m.file("go.mod"), file), os.WriteFile(m.file("go.sum"), []byte(others), 0o644))
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// workRequires has go.work replace a version, in place of the one before.
func (r *repository) workRequires(version string) error {
	work, err := r.work()
	if err != nil {
		return err
	}
	for _, p := range slices.Clone(work.Replace) {
		if old, folder := p.Old, p.New.Path; r.has(old.Path) && old.Version != version {
			err = errors.Join(err, work.DropReplace(old.Path, old.Version), work.AddReplace(old.Path, version, folder, ""))
		}
	}
	work.Cleanup()
	return errors.Join(err, os.WriteFile(filepath.Join(r.dir, "go.work"), modfile.Format(work.Syntax), 0o644))
}

// commit commits the version, writes the sums of the modules into go.sum, and returns
// the tags, the root's first.
func (r *repository) commit(folder, version string) (tags []string, err error) {
	if _, err := r.git("commit", "--quiet", "--allow-empty", "--all", "-m", "Release "+version); err != nil {
		return nil, err
	}
	sums := map[string]string{}
	cache := filepath.Join(folder, "first")
	if sums[r.root], err = r.sums(cache, r.root, version, version); err != nil {
		return nil, err
	}
	tags = []string{version}
	for _, m := range r.modules { // in an order in which those that it requires are done
		if len(m.requires) > 0 {
			if err := m.write(sums); err != nil {
				return nil, err
			}
			if _, err := r.git("commit", "--quiet", "--all", "--amend", "--no-edit"); err != nil {
				return nil, err
			}
		}
		if m.isForUsers() {
			tag := m.dir + "/" + version
			if sums[m.path], err = r.sums(cache, m.path, version, tag); err != nil {
				return nil, err
			}
			tags = append(tags, tag)
		}
	}
	final := map[string]string{}
	for _, tag := range tags { // on the last commit, where no sum is another one
		path := strings.TrimSuffix(r.root+"/"+strings.TrimSuffix(tag, version), "/")
		if final[path], err = r.sums(filepath.Join(folder, "last"), path, version, tag); err != nil {
			return nil, err
		}
	}
	if !maps.Equal(final, sums) {
		return nil, fmt.Errorf("the sums of the modules depend on go.sum, which must not be:\n%v\n%v", sums, final)
	}
	return tags, nil
}

// write writes the sums of the modules that it requires into its go.sum.
func (m *module) write(sums map[string]string) error {
	_, text, err := m.parse()
	for _, path := range m.requires {
		if sums[path] == "" {
			err = errors.Join(err, fmt.Errorf("%s requires %s, which is not for users and has no version", m.dir, path))
		}
		text = insert(text, sums[path])
	}
	return errors.Join(err, os.WriteFile(m.file("go.sum"), []byte(text), 0o644))
}

// sums tags a module, and returns the lines of go.sum that the go command makes of it,
// with a module cache of its own.
func (r *repository) sums(cache, path, version, tag string) (string, error) {
	if _, err := r.git("tag", "--force", "--annotate", "-m", "Release "+version, tag); err != nil {
		return "", err
	}
	out, err := command(filepath.Dir(cache), append(installing(r), "GOMODCACHE="+cache, "GOFLAGS=-modcacherw"), "go", "mod", "download", "-json", path+"@"+version)
	if err != nil {
		return "", err
	}
	var got struct{ Sum, GoModSum string }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", path, version, got.Sum, got.GoModSum), nil
}

// installing returns an environment in which the go command finds the repository's modules in
// it, by its tags, and in no proxy.
func installing(r *repository) []string {
	return []string{
		"GOWORK=off", "GONOPROXY=" + r.root, "GONOSUMDB=" + r.root,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + r.dir + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + r.root,
	}
}
