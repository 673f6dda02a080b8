package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// release commits a version in a worktree of its own, and moves it into the repository unless dry.
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
	if _, err := r.git("worktree", "add", "--quiet", "--detach", folder); err != nil {
		return err
	}
	defer r.git("worktree", "remove", "--force", folder)
	said, err := commit(folder, version)
	if err != nil {
		return err
	}
	tags := []string{version}
	for _, m := range r.modules {
		if m.isForUsers() {
			tags = append(tags, m.dir+"/"+version)
		}
	}
	fmt.Fprintf(w, "%s\n\ntags: %s\n", said, strings.Join(tags, " "))
	if dry {
		fmt.Fprintln(w, "nothing is changed here: that was -n")
		return nil
	}
	made, _, _ := strings.Cut(said, " ")
	if _, err := r.git("merge", "--quiet", "--ff-only", made); err != nil {
		return err
	}
	for _, tag := range tags {
		if _, err := r.git("tag", "--annotate", "-m", "Release "+version, tag); err != nil {
			return err
		}
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
	return err
}

// commit commits a version in a worktree, and returns the commit's short hash, its subject and its files.
func commit(dir, version string) (string, error) {
	r, err := open(dir)
	if err != nil {
		return "", err
	}
	errs := []error{r.workRequires(version), r.finishGuides()}
	for _, m := range r.modules {
		errs = append(errs, r.require(m.mod, version), write(m.file("go.mod"), m.mod))
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	if _, err := r.git("commit", "--quiet", "--allow-empty", "--all", "-m", "Release "+version); err != nil {
		return "", err
	}
	return r.git("show", "--stat", "--format=%h %s", "HEAD")
}

// workRequires has go.work replace a version, in place of the one before.
func (r *repository) workRequires(version string) (err error) {
	for _, p := range slices.Clone(r.work.Replace) {
		if old, folder := p.Old, p.New.Path; r.has(old.Path) && old.Version != version {
			err = errors.Join(err, r.work.DropReplace(old.Path, old.Version), r.work.AddReplace(old.Path, version, folder, ""))
		}
	}
	r.work.Cleanup()
	return errors.Join(err, os.WriteFile(filepath.Join(r.dir, "go.work"), modfile.Format(r.work.Syntax), 0o644))
}

var (
	before     = regexp.MustCompile(`(?s)\n*<!-- before the first version -->\n.*?\n<!-- end -->\n`)
	translated = regexp.MustCompile(`(?m)^<!-- translated from (\S+) [0-9a-f]{12} -->$`)
)

// finishGuides takes out of the documents what is for the time before the first version, and then has each
// translation name the version of its original.
func (r *repository) finishGuides() error {
	names, err := r.git("ls-files", "*.md")
	for _, change := range []func(text string) string{
		func(text string) string { return before.ReplaceAllString(text, "\n") },
		func(text string) string {
			return translated.ReplaceAllStringFunc(text, func(line string) string {
				original := translated.FindStringSubmatch(line)[1]
				content, reading := os.ReadFile(filepath.Join(r.dir, original))
				err = errors.Join(err, reading)
				sum := sha256.Sum256(content)
				return fmt.Sprintf("<!-- translated from %s %x -->", original, sum[:6])
			})
		},
	} {
		for name := range strings.FieldsSeq(names) {
			file := filepath.Join(r.dir, name)
			text, reading := os.ReadFile(file)
			if err = errors.Join(err, reading); err == nil {
				err = os.WriteFile(file, []byte(change(string(text))), 0o644)
			}
		}
	}
	return err
}
