package command_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Programs read what several commands print: the same thing has the same form of name.
func TestNamesInJSONAreInSnakeCase(t *testing.T) {
	t.Parallel()
	tag := regexp.MustCompile("`json:\"([^\",]*)")
	found := 0
	for _, pattern := range []string{
		"idem/idemcmd/*.go", "idem/doctor/*.go", "asaas/cmd/queue/*.go", "asaas/plan*.go", "asaas/reconcile*.go", "internal/command/*.go",
	} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range tag.FindAllStringSubmatch(string(text), -1) {
				found++
				if m[1] != "-" && m[1] != strings.ToLower(m[1]) {
					t.Errorf("%s has a field that JSON calls %q", file, m[1])
				}
			}
		}
	}
	if found < 80 {
		t.Errorf("%d names were looked at", found)
	}
}
