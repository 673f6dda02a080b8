package readme

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testName   = regexp.MustCompile(`\bTest[A-Z]\w+`)
	testFunc   = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	inlineCode = regexp.MustCompile("`[^`\n]+`")
	oldName    = regexp.MustCompile("(?m)^\\| `[^|]*\\|") // the first column of the changelog's table
	goName     = regexp.MustCompile(`\b(idemtest|idem|asaas|zeltapay)\.([A-Z]\w*(?:\.[A-Z]\w*)?)`)
	link       = regexp.MustCompile(`\]\(([^)]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// documents are what is written for people.
func documents(t *testing.T) []string {
	t.Helper()
	return slices.Concat([]string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md", "docs/console/README.md"}, guides(t), translations(t))
}

// guides are the documents in docs.
func guides(t *testing.T) []string {
	t.Helper()
	found, err := fs.Glob(os.DirFS(root), "docs/*.md")
	if err != nil || found == nil {
		t.Fatalf("there are no guides, %v", err)
	}
	return found
}

func TestEveryTestThatIsNamedExists(t *testing.T) {
	t.Parallel()
	tests := testsOf(t)
	for _, document := range documents(t) {
		for _, name := range testName.FindAllString(withoutBlocks(t, document), -1) { // those in blocks are the reader's
			if !tests[name] {
				t.Errorf("%s names %s: there is no such test", document, name)
			}
		}
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
			for _, found := range testFunc.FindAllStringSubmatch(read(t, file), -1) {
				tests[found[1]] = true
			}
		}
	}
	return tests
}

func TestEveryGoNameInTheTextExists(t *testing.T) {
	t.Parallel()
	packages := map[string]string{"idem": "idem", "idemtest": "idem/idemtest", "asaas": "asaas", "zeltapay": "zeltapay"}
	checked := make(map[string]bool)
	for _, document := range documents(t) {
		text := oldName.ReplaceAllString(read(t, document), "|")
		code := strings.Join(inlineCode.FindAllString(text, -1), " ")
		for _, name := range goName.FindAllStringSubmatch(code, -1) {
			if !checked[name[0]] {
				run(t, "doc", filepath.Join(root, packages[name[1]]), name[2])
			}
			checked[name[0]] = true
		}
	}
}

// The sample of a comment is a real one.
func TestTheSampleOfACommentIsRealCode(t *testing.T) {
	t.Parallel()
	if sample := blocks(t, "CONTRIBUTING.md", "go")[0].text; !strings.Contains(read(t, "asaas/verify.go"), sample) {
		t.Errorf("asaas/verify.go does not contain:\n%s", sample)
	}
}

func TestEveryLinkInsideTheRepositoryLeadsSomewhere(t *testing.T) {
	t.Parallel()
	for _, document := range documents(t) {
		for _, to := range link.FindAllStringSubmatch(read(t, document), -1) {
			if strings.Contains(to[1], "://") {
				continue
			}
			file, anchor, hasAnchor := strings.Cut(to[1], "#")
			target := document
			if file != "" {
				target = filepath.Join(filepath.Dir(document), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %v", document, err)
			} else if hasAnchor && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s links to %s: that document has no such heading", document, to[1])
			}
		}
	}
}

// anchors are what a link to a document's headings ends with, as GitHub makes them.
func anchors(t *testing.T, document string) (all []string) {
	t.Helper()
	for _, found := range heading.FindAllStringSubmatch(withoutBlocks(t, document), -1) {
		text := noAnchor.ReplaceAllString(strings.ToLower(found[1]), "")
		all = append(all, strings.ReplaceAll(text, " ", "-"))
	}
	return all
}

// Commands name packages and scripts that are there, and tests that match.
func TestEveryCommandNamesWhatExists(t *testing.T) {
	t.Parallel()
	for _, document := range append(documents(t), "BENCHMARKS.md", "SECURITY.md") {
		if elsewhere[document] {
			continue
		}
		text := read(t, document)
		for _, script := range script.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, script[1])); err != nil {
				t.Errorf("%s has %q: %v", document, script[0], err)
			}
		}
		for _, c := range command.FindAllStringSubmatch(text, -1) {
			if err := checkCommand(t, c[1], c[2], c[3]); err != nil {
				t.Errorf("%s has %q: %v", document, strings.TrimSpace(c[0]), err)
			}
		}
	}
}

var (
	command = regexp.MustCompile("(?:cd (\\S+) && )?\\bgo (run|test|doc|build|generate|get|install) ([^`#\n]*)")
	script  = regexp.MustCompile(`\bbash (\S+/\w+)`)
	pattern = regexp.MustCompile(`-(run|bench|fuzz)[ =](?:'([^']+)'|([\w|]+))`)
	isMain  = regexp.MustCompile(`(?m)^package main$`)
	aTest   = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w+)\(`)
)

const module = "github.com/paghooks/paghooks"

// checkCommand checks a command of Go's, which runs in a folder of the repository.
func checkCommand(t *testing.T, folder, verb, arguments string) error {
	t.Helper()
	var code strings.Builder // of the packages
	words := strings.Fields(arguments)
	if folder != "" {
		words = append(words, ".")
	}
	for _, word := range words {
		word, _, _ = strings.Cut(word, "@")
		path, ours := strings.CutPrefix(word, module)
		if !ours {
			if !strings.HasPrefix(word, "./") && (word != "." || folder == "") {
				continue // a flag, or a package of the reader's own
			}
			path = filepath.Join(folder, word)
		}
		if strings.HasSuffix(path, "...") || verb == "get" {
			return nil // there is the root, at least
		}
		files, err := filepath.Glob(filepath.Join(root, path, "*.go"))
		if err != nil || files == nil {
			return errors.Join(fmt.Errorf("there is no package in %s", path), err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			code.WriteString(string(content))
		}
		if verb == "run" {
			break // the rest is for the program
		}
	}
	if verb == "run" && code.String() != "" && !isMain.MatchString(code.String()) {
		return errors.New("that is not a program")
	}
	for _, p := range pattern.FindAllStringSubmatch(arguments, -1) {
		if err := matches(p[1], p[2]+p[3], code.String()); err != nil {
			return err
		}
	}
	return nil
}

// matches checks that each part of a pattern matches a test.
func matches(flag, pattern, code string) error {
	kind := map[string]string{"run": "Test", "bench": "Benchmark", "fuzz": "Fuzz"}[flag]
	for part := range strings.SplitSeq(pattern, "|") {
		if part == "^$" {
			continue // none, on purpose
		}
		tests, err := regexp.Compile(part)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(aTest.FindAllStringSubmatch(code, -1), func(found []string) bool {
			return strings.HasPrefix(found[1], kind) && tests.MatchString(found[1])
		}) {
			return fmt.Errorf("-%s %s matches no test there", flag, part)
		}
	}
	return nil
}
