package readme

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile(`\bTest[A-Z]\w+`)
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	link     = regexp.MustCompile(`\]\(([^)]+)\)`)
)

// guides returns the documents in docs.
func guides(t *testing.T) []string {
	t.Helper()
	found, err := fs.Glob(os.DirFS(root), "docs/*.md")
	if err != nil || found == nil {
		t.Fatalf("there are no guides, %v", err)
	}
	return found
}

func TestEveryPromiseHasItsTest(t *testing.T) {
	t.Parallel()
	tests := testsOf(t)
	named := testName.FindAllString(read(t, "docs/promises.md"), -1)
	for _, name := range named {
		if !tests[name] {
			t.Errorf("docs/promises.md names %s: there is no such test", name)
		}
	}
	if len(named) < 30 {
		t.Errorf("docs/promises.md names %d tests", len(named))
	}
}

func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	tests := make(map[string]bool)
	for _, pattern := range []string{"*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go"} {
		files, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text := read(t, file)
			if strings.HasPrefix(text, "//go:build long") {
				continue // go test ./... does not run it
			}
			for _, found := range testFunc.FindAllStringSubmatch(text, -1) {
				tests[found[1]] = true
			}
		}
	}
	return tests
}

func TestEveryLinkInsideTheRepositoryLeadsSomewhere(t *testing.T) {
	t.Parallel()
	others := []string{"README.md", "BENCHMARKS.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/README.md", "docs/console/README.md"}
	for _, document := range slices.Concat(others, guides(t), translations(t)) {
		for _, to := range link.FindAllStringSubmatch(read(t, document), -1) {
			file, _, _ := strings.Cut(to[1], "#")
			if strings.Contains(file, "://") || file == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(document), file)); err != nil {
				t.Errorf("%s: %v", document, err)
			}
		}
	}
}
