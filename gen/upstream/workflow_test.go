package upstream

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// workflow is a directory with programs in place of those that a step of the workflow calls.
type workflow struct {
	*testing.T
	dir string
}

func newWorkflow(t *testing.T, files map[string]string) workflow {
	t.Helper()
	for _, program := range []string{"bash", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: install %s, as the machines of GitHub have it", err, program)
		}
	}
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return workflow{t, dir}
}

// run runs a step of the workflow as GitHub does, and returns its environment.
func (w workflow) run(name string) (env map[string]string) {
	w.Helper()
	text, err := os.ReadFile("../../.github/workflows/upstream.yml")
	if err != nil {
		w.Fatal(err)
	}
	type step struct {
		Name, Run string
		If        string
		Env       map[string]string
	}
	var file struct {
		Jobs struct{ Report struct{ Steps []step } }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		w.Fatal(err)
	}
	steps := file.Jobs.Report.Steps
	n := slices.IndexFunc(steps, func(s step) bool { return s.Name == name })
	if n < 0 || steps[n].If != "" {
		w.Fatalf("the workflow has no step %s that always runs", name)
	}
	bash := exec.CommandContext(w.Context(), "bash", "-e", "-o", "pipefail", "-c", steps[n].Run)
	bash.Dir, bash.Env = w.dir, append(os.Environ(), "PATH="+w.dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for name, value := range steps[n].Env {
		bash.Env = append(bash.Env, name+"="+value)
	}
	if out, err := bash.CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
	return steps[n].Env
}

// read returns a file, or "" if there is none.
func (w workflow) read(name string) string {
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	return string(text)
}

func TestWorkflowReportsWhatDiffers(t *testing.T) {
	t.Parallel()
	const (
		says = "#!/bin/sh\necho \"$(basename $0) $*\" >>called\n"
		mine = "openapi: 3.1.0\nx-upstream: # its own\n  document: https://example.com/a?b=c\n  schemas:\n    A: B\nx-other:\n  document: no\n"
	)
	for reason, c := range map[string]struct {
		fails, with, want string
	}{
		"nothing differs":         {},
		"a spec differs":          {"oasdiff", "echo '`x` is new'; exit 1", "## spec/a.yaml differs\n\n    `x` is new\n\n"},
		"oasdiff has failed":      {"oasdiff", "echo no >&2; exit 102", "## spec/a.yaml could not be compared\n\n    no\n\n"},
		"the spec is not aligned": {"gen", "echo no >&2; exit 1", "## spec/a.yaml could not be compared\n\n    no\n\n"},
		"there is no document":    {"curl", "exit 22", "## spec/a.yaml could not be compared\n\n\n"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"spec/a.yaml": mine, "spec/b.yaml": "openapi: 3.1.0\n", "curl": says, "gen": says, "oasdiff": says}
			files[c.fails] += c.with
			delete(files, "")
			w := newWorkflow(t, files)
			w.run("Compare")
			if diff := cmp.Diff(c.want, w.read("report.md")); diff != "" {
				t.Errorf("the report (-want +got):\n%s", diff)
			}
			if called := w.read("called"); !strings.Contains(called, "--output document.json https://example.com/a?b=c\n") || strings.Count(called, "curl") != 1 {
				t.Errorf("the document is not asked for once: %s", called)
			}
		})
	}
}

// gh is a program in place of GitHub's: it notes its arguments, and lists the issues of the file issues.json
// as gh does.
const gh = `#!/bin/sh
if [ "$2" = list ]; then
	for last; do :; done
	exec jq --raw-output "$last" issues.json
fi
echo "$*" >>said
`

// The weekly report is one issue, however long a spec differs.
func TestWorkflowReportsInOneIssue(t *testing.T) {
	t.Parallel()
	const title = "A provider's documentation differs from its spec"
	issue := func(number, title, isBot string) string {
		return `{"number": ` + number + `, "title": "` + title + `", "author": {"is_bot": ` + isBot + `}}`
	}
	for reason, c := range map[string]struct {
		issues []string
		report bool
		want   string
	}{
		"the first difference":                 {report: true, want: "issue create --title " + title + " --body-file report.md\n"},
		"it differs still":                     {issues: []string{issue("7", title, "true")}, report: true, want: "issue edit 7 --body-file report.md\n"},
		"it differs no more":                   {issues: []string{issue("7", title, "true")}, want: "issue close 7 --comment Nothing differs any more.\n"},
		"nothing differs":                      {},
		"another issue, and a person's":        {issues: []string{issue("7", "A question", "true"), issue("8", title, "false")}, report: true, want: "issue create --title " + title + " --body-file report.md\n"},
		"two issues, one of them made by hand": {issues: []string{issue("9", title, "true"), issue("7", title, "false")}, report: true, want: "issue edit 9 --body-file report.md\n"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"gh": gh, "issues.json": "[" + strings.Join(c.issues, ",") + "]"}
			if c.report {
				files["report.md"] = "## spec/asaas.yaml differs\n"
			}
			w := newWorkflow(t, files)
			if env := w.run("Report"); env["TITLE"] != title {
				t.Fatalf("the issue is called %q", env["TITLE"])
			}
			if diff := cmp.Diff(c.want, w.read("said")); diff != "" {
				t.Error("gh (-want +got):\n" + diff)
			}
		})
	}
}
