package readme

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every module that the root requires is in the go.mod of its users, and raises the version that their own tools
// have. A tool, or a test of what needs another module, has a module of its own: gen and spec/tests are two.
func TestTheRootRequiresPgxAndForItsTestsGoCmp(t *testing.T) {
	t.Parallel()
	type requirement struct{ Module, Comment string }
	var got []requirement
	for _, line := range regexp.MustCompile(`(?m)^(?:require )?\t?(\S+) v\S+(?: // (.*))?$`).FindAllStringSubmatch(read(t, "go.mod"), -1) {
		got = append(got, requirement{line[1], line[2]})
	}
	want := []requirement{
		{"github.com/google/go-cmp", ""},
		{"github.com/jackc/pgx/v5", ""},
		{"github.com/jackc/pgpassfile", "indirect"}, // these are pgx's
		{"github.com/jackc/pgservicefile", "indirect"},
		{"github.com/jackc/puddle/v2", "indirect"},
		{"golang.org/x/sync", "indirect"},
		{"golang.org/x/text", "indirect"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("go.mod (-want +got):\n%s", diff)
	}
}

// The tag ignore has go mod tidy leave tools.go out, which any other tag does not.
func TestToolsAreNoRequirements(t *testing.T) {
	t.Parallel()
	if !regexp.MustCompile(`\A//go:build ignore\n\n`).MatchString(read(t, "tools.go")) {
		t.Error("tools.go has no //go:build ignore in its first line")
	}
	for _, directive := range []string{"tool", "replace", "exclude"} {
		if regexp.MustCompile(`(?m)^` + directive + `\b`).MatchString(read(t, "go.mod")) {
			t.Errorf("go.mod has a %s", directive)
		}
	}
}
