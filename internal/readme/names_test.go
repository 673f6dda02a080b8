package readme

import (
	"io/fs"
	"os"
	"regexp"
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

// go test ./... runs a test of every promise. Those that it does not run are marked.
func TestEveryPromiseHasItsTest(t *testing.T) {
	t.Parallel()
	quick := testsOf(t)
	named := 0
	for promise := range strings.SplitSeq(read(t, "docs/promises.md"), "\n- ") {
		isLong, isQuick := false, false
		for _, found := range regexp.MustCompile(`\b(Test[A-Z]\w+)( \(\*long\*\))?`).FindAllStringSubmatch(promise, -1) {
			name, marked := found[1], found[2] != ""
			if quick[name] == marked {
				t.Errorf("docs/promises.md: %s is marked as long: %t, and go test ./... runs it: %t", name, marked, quick[name])
			}
			isLong, isQuick = isLong || marked, isQuick || !marked
			named++
		}
		if isLong && !isQuick {
			t.Errorf("docs/promises.md: go test ./... runs no test of %s", promise)
		}
	}
	if named < 70 {
		t.Errorf("docs/promises.md names %d tests", named)
	}
}

func TestEveryTestThatADocumentNamesExists(t *testing.T) {
	t.Parallel()
	tests := make(map[string]bool)
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "_test.go") {
			for _, found := range testFunc.FindAllStringSubmatch(read(t, path), -1) {
				tests[found[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range documents(t) {
		text := read(t, document)
		for _, own := range testFunc.FindAllStringSubmatch(text, -1) {
			tests[own[1]] = true // which a reader copies
		}
		for _, name := range testName.FindAllString(text, -1) {
			if !tests[name] {
				t.Errorf("%s names %s: there is no such test", document, name)
			}
		}
	}
}

func TestTheWaysOfAnEventNameFunctionsThatExist(t *testing.T) {
	t.Parallel()
	declared := make(map[string]bool)
	function := regexp.MustCompile(`(?m)^func (?:\(.*?\) )?(\w+)`)
	err := fs.WalkDir(os.DirFS(root), "idem", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			for _, found := range function.FindAllStringSubmatch(read(t, path), -1) {
				declared[found[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ways, _, _ := strings.Cut(find(t, "CONTRIBUTING.md", "")[0].text, "\nrunOnce")
	names := regexp.MustCompile(`→ (?:\w+\.)?(\w+)`).FindAllStringSubmatch(ways, -1)
	for _, name := range names {
		if !declared[name[1]] {
			t.Errorf("CONTRIBUTING.md draws an arrow to %s: there is no such function in idem", name[1])
		}
	}
	if len(names) < 35 {
		t.Errorf("CONTRIBUTING.md draws %d arrows", len(names))
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

// documents returns all documents of the repository.
func documents(t *testing.T) (found []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") || path == "llms.txt" {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) < 30 {
		t.Fatalf("%d documents, %v", len(found), err)
	}
	return found
}
