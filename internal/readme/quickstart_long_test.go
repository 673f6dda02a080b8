//go:build long

package readme

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The README shows some of the lines, in narrower columns. A line with … stands for others.
func TestTheREADMEShowsWhatTheQuickstartPrints(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "run", "./examples/quickstart", "-once")
	cmd.Dir, cmd.Env = root, os.Environ()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	words := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	printed := strings.Split(string(out), "\n")
	for line := range strings.Lines(blocks(t, "README.md", "text")[0].text) {
		want := words(line)
		for want != "…" && (len(printed) == 0 || words(printed[0]) != want) {
			if len(printed) == 0 {
				t.Fatalf("the quickstart does not print %q, or not in this order:\n%s", want, out)
			}
			printed = printed[1:]
		}
	}
}
