package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
)

// programs are of users, one for each module.
var programs = map[string]string{
	"": `
import (
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"
	"ROOT/asaas"
	"ROOT/idem"
)

func main() {
	http.Handle("POST /webhooks/asaas", idem.NewInbox(new(pgxpool.Pool), asaas.NewDispatcher("token")))
}`,
	"idem/broker/idemkafka": `
import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
	"ROOT/idem/broker"
	"ROOT/idem/broker/idemkafka"
)

var _ broker.Publisher = (*idemkafka.Publisher)(nil)

func main() {
	_ = idemkafka.Consume(context.Background(), new(kgo.Client), func(context.Context, broker.Message) error { return nil })
}`,
	"idem/telemetry/idemotel": `
import (
	"ROOT/idem"
	"ROOT/idem/telemetry/idemotel"
)

func main() {
	_, _ = idemotel.New(idemotel.Settings{})
	_ = new(idem.Inbox)
}`,
	"idem/telemetry/idemprom": `
import (
	"github.com/prometheus/client_golang/prometheus"
	"ROOT/idem/telemetry/idemprom"
)

func main() { prometheus.MustRegister(idemprom.NewCollector()) }`,
	"idem/broker/idemrabbitmq": `
import (
	"context"

	"ROOT/idem/broker"
	"ROOT/idem/broker/idemrabbitmq"
)

var _ broker.Publisher = (*idemrabbitmq.Publisher)(nil)

func main() {
	_ = idemrabbitmq.Consume(context.Background(), nil, "queue", func(context.Context, broker.Message) error { return nil })
}`,
	"idem/broker/idemsqs": `
import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"ROOT/idem/broker"
	"ROOT/idem/broker/idemsqs"
)

var _ broker.Publisher = (*idemsqs.Publisher)(nil)

func main() {
	_ = idemsqs.Consume(context.Background(), sqs.New(sqs.Options{}), "url", func(context.Context, broker.Message) error { return nil })
}`,
}

// A user has an empty module, no go.work and no replace. The module for a broker stays at
// the first version while the root goes to the second, in which no internal package has
// the name that it had.
func TestEveryModuleInstallsAloneAndOutlivesItsRootsInternalPackages(t *testing.T) {
	t.Parallel()
	s := snapshot(t)
	first := s.version
	second := nextMinor(t, first)
	s.release(t, first)
	s.renameInternals(t)
	s.release(t, second)
	s.bin = t.TempDir()
	s.env = []string{"GOMODCACHE=" + t.TempDir(), "GOBIN=" + s.bin, "GOPROXY=" + proxies(t), "GOFLAGS=-mod=mod -modcacherw -trimpath"}

	paths := []string{""}
	for _, m := range s.modules {
		if m.isForUsers() && m.dir != generator { // which users run, as below
			paths = append(paths, m.dir)
		}
	}
	for _, dir := range paths {
		t.Run(filepath.Base(s.root+"/"+dir), func(t *testing.T) {
			t.Parallel()
			program, ok := programs[dir]
			if !ok {
				t.Fatalf("no program uses %s: add one to the table", dir)
			}
			u := user{t, s, t.TempDir()}
			u.does("mod", "init", "example.com/user")
			u.write("main.go", "package main\n"+strings.ReplaceAll(program, "ROOT", s.root))
			path := strings.TrimSuffix(s.root+"/"+dir, "/")

			u.does("get", path+"@"+first)
			u.builds()
			u.has(path, first)
			u.has(s.root, first)
			u.does("get", s.root+"@"+second)
			u.builds()
			u.has(s.root, second)
			if dir != "" {
				u.has(path, first)
			}
			u.does("get", path+"@"+second)
			u.builds()
			u.has(path, second)
			u.has(s.root, second)
		})
	}
	t.Run("a provider of one's own", func(t *testing.T) {
		t.Parallel()
		followsTheGuide(t, user{t, s, t.TempDir()}, second)
	})
	t.Run("the first event", func(t *testing.T) {
		t.Parallel()
		u := user{t, s, t.TempDir()}
		readme, err := os.ReadFile(filepath.Join(s.dir, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		u.write("main.go", programOf(t, string(readme)))
		u.does("mod", "init", "shop")
		u.does("get", s.root+"@"+second)
		u.does("mod", "tidy")
		u.builds()
		u.does("build", "-o", os.DevNull, s.root+"/asaas/cmd/asaas-fake") // of the version in go.mod, as the guide runs it
		for _, guide := range []string{"docs/first-event.md", "docs/first-event-zeltapay.md", "README.md"} {
			if text, err := os.ReadFile(filepath.Join(s.dir, guide)); err != nil || strings.Contains(string(text), "before the first version") {
				t.Errorf("%s of a version speaks of the time before it, or cannot be read: %v", guide, err)
			}
		}
	})
	t.Run("commands", func(t *testing.T) {
		t.Parallel()
		u := user{t, s, t.TempDir()}
		for _, program := range []string{"idem/cmd/idem", "asaas/cmd/asaas-queue", "gen"} {
			u.does("install", s.root+"/"+program+"@"+second)
			if _, err := os.Stat(filepath.Join(s.bin, filepath.Base(program))); err != nil {
				t.Error(err)
			}
		}
	})
}

// source is a copy of this repository, in which versions can be released.
type source struct {
	*repository
	bin string   // where users install programs
	env []string // of users
}

// snapshot copies the files of this repository that git does not ignore.
func snapshot(t *testing.T) *source {
	t.Helper()
	files, err := command("../..", nil, "git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name := range strings.FieldsSeq(files) {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if errors.Is(err, fs.ErrNotExist) { // deleted
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		save(t, filepath.Join(dir, name), string(text))
	}
	return repositoryOf(t, dir)
}

// repositoryOf makes a git repository of a folder, with one commit.
func repositoryOf(t *testing.T, dir string) *source {
	t.Helper()
	s := &source{repository: &repository{dir: dir}}
	s.must(t, "init", "--quiet")
	s.must(t, "config", "user.name", "A maintainer")
	s.must(t, "config", "user.email", "maintainer@example.com")
	s.must(t, "add", "--all")
	s.must(t, "commit", "--quiet", "-m", "As it is")
	r, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.repository = r
	return s
}

func (s *source) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.git(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// release releases a version, after the changelog has a heading for it.
func (s *source) release(t *testing.T, version string) {
	t.Helper()
	changes, err := os.ReadFile(filepath.Join(s.dir, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(s.dir, "CHANGELOG.md"), string(changes)+"\n## ["+version[1:]+"] - 2026-11-23\n")
	s.must(t, "commit", "--quiet", "--all", "-m", "The changelog names "+version)
	if err := release(s.dir, version, false, io.Discard); err != nil {
		t.Fatal(err)
	}
	if s.repository, err = open(s.dir); err != nil {
		t.Fatal(err)
	}
}

// renameInternals gives every internal package of the root another name.
func (s *source) renameInternals(t *testing.T) {
	t.Helper()
	imported := regexp.MustCompile(`"` + regexp.QuoteMeta(s.root) + `/(\w+/)*internal/`)
	renamed := 0
	for name := range strings.FieldsSeq(s.must(t, "ls-files", "*.go")) {
		if s.isBeside(name) {
			continue
		}
		before, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		save(t, filepath.Join(s.dir, name), imported.ReplaceAllString(string(before), "${0}renamed/"))
	}
	for name := range strings.FieldsSeq(s.must(t, "ls-files")) {
		before, after, internal := strings.Cut("/"+name, "/internal/")
		if !internal || s.isBeside(name) {
			continue
		}
		to := filepath.Join(s.dir, before, "internal", "renamed", after)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(s.dir, name), to); err != nil {
			t.Fatal(err)
		}
		renamed++
	}
	if renamed == 0 {
		t.Fatal("no internal package is there to be renamed")
	}
	s.must(t, "add", "--all")
	s.must(t, "commit", "--quiet", "-m", "Rename the internal packages")
}

// isBeside reports whether a file belongs to a module other than the root.
func (s *source) isBeside(name string) bool {
	for _, m := range s.modules {
		if strings.HasPrefix(name, m.dir+"/") {
			return true
		}
	}
	return false
}

// user is a user's module.
type user struct {
	*testing.T
	source *source
	dir    string
}

// does runs a go command.
func (u user) does(args ...string) string {
	u.Helper()
	out, err := command(u.dir, append(installing(u.source.repository), u.source.env...), "go", args...)
	if err != nil {
		u.Fatal(err)
	}
	return out
}

// installing returns an environment in which the go command finds the repository's modules in
// it, by its tags, and in no proxy.
func installing(r *repository) []string {
	return []string{
		"GOWORK=off", "GONOPROXY=" + r.root, "GONOSUMDB=" + r.root,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + r.dir + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + r.root,
	}
}

func (u user) write(name, text string) { save(u.T, filepath.Join(u.dir, name), text) }

func (u user) builds() {
	u.Helper()
	u.does("build", "-o", os.DevNull, ".")
	u.does("mod", "tidy") // which reads the tests of imported packages
	u.does("vet", ".")
	if mod, err := os.ReadFile(filepath.Join(u.dir, "go.mod")); err != nil || strings.Contains(string(mod), "replace") {
		u.Errorf("the user's go.mod has a replace, or cannot be read, %v:\n%s", err, mod)
	}
}

// has checks which version the user has.
func (u user) has(path, version string) {
	u.Helper()
	if got := u.does("list", "-m", "-f", "{{.Version}}", path); got != version {
		u.Errorf("the user has %s %s, want %s", path, got, version)
	}
}

// proxies gives the modules that this machine has, and then those of its proxies.
func proxies(t *testing.T) string {
	t.Helper()
	out, err := command(".", nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		t.Fatal(err)
	}
	cache, proxy, _ := strings.Cut(out, "\n")
	return "file://" + filepath.ToSlash(cache) + "/cache/download," + proxy
}

// nextMinor is v0.2.0 of v0.1.3.
func nextMinor(t *testing.T, version string) string {
	t.Helper()
	major, minor, _ := strings.Cut(semver.MajorMinor(version), ".")
	n, err := strconv.Atoi(minor)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s.%d.0", major, n+1)
}

func save(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
