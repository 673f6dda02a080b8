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
	for _, program := range []string{"bash", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: install %s, as the machines of GitHub have it", err, program)
		}
	}
	script, title := reportStep(t)
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
			dir := t.TempDir()
			files := map[string]string{"gh": gh, "issues.json": "[" + strings.Join(c.issues, ",") + "]", "said": ""}
			if c.report {
				files["report.md"] = "## spec/asaas.yaml differs\n"
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			bash := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script) // as GitHub runs a step
			bash.Dir, bash.Env = dir, append(os.Environ(), "TITLE="+title, "PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
			if out, err := bash.CombinedOutput(); err != nil || len(out) > 0 {
				t.Fatalf("%v: %s", err, out)
			}
			said, err := os.ReadFile(filepath.Join(dir, "said"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(said)); diff != "" {
				t.Error("gh (-want +got):\n" + diff)
			}
		})
	}
}

// reportStep returns the script of the workflow's step Report, and the issue's title.
func reportStep(t *testing.T) (script, title string) {
	t.Helper()
	text, err := os.ReadFile("../../.github/workflows/upstream.yml")
	if err != nil {
		t.Fatal(err)
	}
	type step struct {
		Name, Run string
		If        string
		Env       map[string]string
	}
	var workflow struct {
		Jobs struct{ Report struct{ Steps []step } }
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	steps := workflow.Jobs.Report.Steps
	n := slices.IndexFunc(steps, func(s step) bool { return s.Name == "Report" })
	if n < 0 || steps[n].If != "" {
		t.Fatal("the workflow has no step Report that always runs")
	}
	return steps[n].Run, steps[n].Env["TITLE"]
}
