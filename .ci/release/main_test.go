package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

// shop is a repository with a module that users import, the generator, which they run, and a module that only tests.
var shop = map[string]string{
	"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-11-23\n",
	"LICENSE":      "As you like.\n",
	"go.mod":       "module github.com/paghooks/paghooks\n\ngo 1.26.0\n",
	"go.sum":       "",
	"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./gen\n\t./idem/idemx\n\t./tests\n)\n\nreplace (\n" +
		"\tgithub.com/paghooks/paghooks v0.1.0 => .\n\tgithub.com/paghooks/paghooks/idem/idemx v0.1.0 => ./idem/idemx\n)\n",
	"gen/go.mod":              "module github.com/paghooks/paghooks/gen\n\ngo 1.26.0\n",
	"gen/go.sum":              "",
	"gen/main.go":             "package main\n\nfunc main() {}\n",
	"idem/idem.go":            "package idem\n\nimport \"github.com/paghooks/paghooks/idem/internal/name\"\n\nconst Name = name.Name\n",
	"idem/internal/name/a.go": "package name\n\nconst Name = \"idem\"\n",
	"idem/idemx/go.mod":       "module github.com/paghooks/paghooks/idem/idemx\n\ngo 1.26.0\n\nrequire github.com/paghooks/paghooks v0.1.0\n",
	"idem/idemx/go.sum":       "",
	"idem/idemx/x.go":         "package idemx\n\nimport \"github.com/paghooks/paghooks/idem\"\n\nconst Name = idem.Name\n",
	"tests/go.mod": "module github.com/paghooks/paghooks/tests\n\ngo 1.26.0\n\nrequire github.com/paghooks/paghooks/idem/idemx v0.1.0\n\n" +
		"require github.com/paghooks/paghooks v0.1.0 // indirect\n",
	"tests/go.sum":    "",
	"tests/a_test.go": "package tests\n\nimport _ \"github.com/paghooks/paghooks/idem/idemx\"\n",
}

func newShop(t *testing.T) *source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range shop {
		save(t, filepath.Join(dir, name), text)
	}
	return repositoryOf(t, dir)
}

// says checks the output of a command of the program, and its status.
func (s *source) says(t *testing.T, status int, want []string, args ...string) {
	t.Helper()
	var said strings.Builder
	if got := run(s.dir, args, &said); got != status {
		t.Errorf("release %s ended with %d, want %d:\n%s", strings.Join(args, " "), got, status, &said)
	}
	for _, text := range want {
		if !strings.Contains(said.String(), text) {
			t.Errorf("release %s does not say %q:\n%s", strings.Join(args, " "), text, &said)
		}
	}
}

func TestTheGuidesOfAVersionDoNotSpeakOfTheTimeBeforeIt(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	save(t, filepath.Join(s.dir, "docs/first.md"), "# First\n\nGet it.\n\n<!-- before the first version -->\n\nUse a clone.\n\n<!-- end -->\n\nRun it.\n")
	save(t, filepath.Join(s.dir, "docs/es/first.md"), "# Primero\n<!-- translated from docs/first.md 0123456789ab -->\n\nObtenerlo.\n"+
		"\n<!-- before the first version -->\nUsar un clon.\n\n\tgo mod edit\n<!-- end -->\nEjecutarlo.\n")
	s.must(t, "add", "--all")
	s.must(t, "commit", "--quiet", "-m", "Guides")
	s.says(t, 0, []string{"docs/es/first.md", "docs/first.md"}, "v0.1.0")
	const want = "# First\n\nGet it.\n\nRun it.\n"
	sum := sha256.Sum256([]byte(want))
	for name, want := range map[string]string{
		"docs/first.md":    want,
		"docs/es/first.md": fmt.Sprintf("# Primero\n<!-- translated from docs/first.md %x -->\n\nObtenerlo.\nEjecutarlo.\n", sum[:6]),
	} {
		got, err := os.ReadFile(filepath.Join(s.dir, name))
		if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
			t.Errorf("%s, %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestAVersionIsOneCommitWithATagForTheRootAndEachModuleForUsers(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.says(t, 0, []string{"3 modules beside the root, which require v0.1.0"}, "check")
	before := s.must(t, "rev-parse", "HEAD")
	s.says(t, 0, []string{"tags: v0.1.0 gen/v0.1.0 idem/idemx/v0.1.0\n", "nothing is changed here"}, "-n", "v0.1.0")
	if after := s.must(t, "rev-parse", "HEAD"); after != before || s.must(t, "tag") != "" {
		t.Errorf("-n made commit %s, and the tags %q", after, s.must(t, "tag"))
	}

	s.says(t, 0, []string{"git push --atomic origin HEAD v0.1.0 gen/v0.1.0 idem/idemx/v0.1.0\n"}, "v0.1.0")
	s.says(t, 0, nil, "check")
	save(t, filepath.Join(s.dir, "CHANGELOG.md"), shop["CHANGELOG.md"]+"\n## [0.2.0] - 2026-11-24\n")
	s.must(t, "commit", "--quiet", "--all", "-m", "The changelog")
	s.says(t, 0, nil, "v0.2.0")
	s.says(t, 0, []string{"which require v0.2.0"}, "check")
	if diff := cmp.Diff("gen/v0.1.0\ngen/v0.2.0\nidem/idemx/v0.1.0\nidem/idemx/v0.2.0\nv0.1.0\nv0.2.0", s.must(t, "tag")); diff != "" {
		t.Error("tags (-want +got):\n" + diff)
	}
	if changed := s.must(t, "status", "--porcelain"); changed != "" {
		t.Error("files are left:\n" + changed)
	}
	want := "Release v0.2.0\nThe changelog\nRelease v0.1.0\nAs it is"
	if diff := cmp.Diff(want, s.must(t, "log", "--format=%s")); diff != "" {
		t.Error("commits (-want +got):\n" + diff)
	}
	for _, tag := range []string{"v0.2.0", "gen/v0.2.0", "idem/idemx/v0.2.0"} {
		if s.must(t, "rev-parse", tag+"^{commit}") != s.must(t, "rev-parse", "HEAD") {
			t.Errorf("%s is not on the last commit", tag)
		}
	}
}

func TestNothingIsReleasedThatUsersCouldNotInstall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, text, version, want string
		uncommitted               bool
	}{
		"no version":                 {version: "v0.1", want: `"v0.1" is no version`},
		"another major version":      {version: "v2.0.0", want: "v2.0.0 needs module paths that end with /v2"},
		"an earlier version":         {version: "v0.0.9", want: "v0.0.9 is before v0.1.0, which the modules require"},
		"a change without a commit":  {version: "v0.1.0", file: "LICENSE", text: "Never.\n", uncommitted: true, want: "files are not committed"},
		"a file without a commit":    {version: "v0.1.0", file: "idem/new.go", text: "package idem\n", uncommitted: true, want: "files are not committed"},
		"nothing in the changelog":   {version: "v0.2.0", want: "CHANGELOG.md has no changes of v0.2.0: put the heading ## [0.2.0] - DATE"},
		"a module with another path": {version: "v0.1.0", file: "idem/idemx/go.mod", text: "module github.com/paghooks/idemx\n", want: "by which its tags are not found"},
		"a module for users that requires tests": {
			version: "v0.1.0", file: "idem/idemx/go.mod", want: "requires github.com/paghooks/paghooks/tests, which is not for users",
			text: "module github.com/paghooks/paghooks/idem/idemx\n\nrequire github.com/paghooks/paghooks/tests v0.1.0\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			if c.file != "" {
				save(t, filepath.Join(s.dir, c.file), c.text)
			}
			if !c.uncommitted {
				s.must(t, "add", "--all")
				s.must(t, "commit", "--quiet", "--allow-empty", "-m", "A change")
			}
			s.says(t, 1, []string{c.want}, c.version)
			if tags := s.must(t, "tag"); tags != "" {
				t.Errorf("there are the tags %q", tags)
			}
		})
	}
}

func TestAVersionIsReleasedOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.must(t, "tag", "idem/idemx/v0.1.0")
	s.says(t, 1, []string{"v0.1.0 is there already", "idem/idemx/v0.1.0"}, "v0.1.0")
}

func TestModulesAreMadeTidyWithoutAProxy(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	mod := filepath.Join(s.dir, "idem/idemx/go.mod")
	for name, text := range map[string]string{
		"a replace":             shop["idem/idemx/go.mod"] + "\nreplace github.com/paghooks/paghooks => ../..\n",
		"another version":       strings.Replace(shop["idem/idemx/go.mod"], "v0.1.0", "v0.0.0-00010101000000-000000000000", 1),
		"a missing requirement": "module github.com/paghooks/paghooks/idem/idemx\n\ngo 1.26.0\n",
	} {
		save(t, mod, text)
		s.says(t, 1, []string{"idem/idemx/go.mod is not tidy: go run ./.ci/release tidy\n"}, "check")
		s.says(t, 0, nil, "tidy")
		got, err := os.ReadFile(mod)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(shop["idem/idemx/go.mod"], string(got)); diff != "" {
			t.Errorf("%s: go.mod (-want +got):\n%s", name, diff)
		}
	}
}

// What is compiled with two versions takes twice as long, and one of them is not what users get.
func TestModulesRequireTheSameVersionsOfOthers(t *testing.T) {
	t.Parallel()
	requiring := func(dir, version string) *module {
		text := shop[path.Join(dir, "go.mod")] + "\nrequire example.com/other " + version + "\n"
		file, err := modfile.Parse("go.mod", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return &module{dir: dir, mod: file}
	}
	top, gen := requiring(".", "v1.9.0"), requiring("gen", "v1.10.0")
	r := &repository{root: "github.com/paghooks/paghooks", top: top, modules: []*module{gen}}
	for _, c := range []struct {
		of      *module
		changed bool
	}{{top, true}, {gen, false}, {top, false}} {
		changed, err := align(c.of.mod, r.highest())
		if got := c.of.mod.Require[0].Mod.Version; changed != c.changed || err != nil || got != "v1.10.0" {
			t.Errorf("%s: aligned %t, %v, to %s, want %t, to the highest v1.10.0", c.of.dir, changed, err, got, c.changed)
		}
	}
}

// What is tested here would not be what users get.
func TestAVersionThatOnlyGoWorkSelectsIsFound(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for name, text := range map[string]string{
		"a/go.mod": "module example.com/a\n\ngo 1.26.0\n\nrequire example.com/b v1.2.0\n",
		"b/go.mod": "module example.com/b\n\ngo 1.26.0\n",
		"go.work": strings.Replace(shop["go.work"], "replace (\n",
			"replace (\n\texample.com/a v1.0.0 => ./a\n\texample.com/b v1.1.0 => ./b\n\texample.com/b v1.2.0 => ./b\n", 1),
		"go.mod":     shop["go.mod"] + "\nrequire example.com/b v1.1.0\n",
		"gen/go.mod": shop["gen/go.mod"] + "\nrequire example.com/a v1.0.0\n",
	} {
		save(t, filepath.Join(s.dir, name), text)
	}
	r, err := open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = "go.mod requires example.com/b v1.1.0, and go.work selects v1.2.0: require that, and run go run ./.ci/release tidy"
	if err := r.checkSelected(); err == nil || err.Error() != want {
		t.Errorf("it says %v, want %q", err, want)
	}
}

func TestArgumentsThatNameNoCommandGetTheUsage(t *testing.T) {
	t.Parallel()
	s := &source{repository: &repository{dir: t.TempDir()}}
	for _, args := range [][]string{nil, {""}, {"-n"}, {"0.2.0"}, {"-n", "v0.1.0", "v0.2.0"}, {"licenses"}, {"check", "v0.1.0"}} {
		s.says(t, 2, []string{"usage: go run ./.ci/release check"}, args...)
	}
}
