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
	testName   = regexp.MustCompile(`\bTest[A-Z]\w+`)
	testFunc   = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	inlineCode = regexp.MustCompile("`[^`\n]+`")
	oldName    = regexp.MustCompile("(?m)^\\| `[^|]*\\|") // the first column of the changelog's table
	goName     = regexp.MustCompile(`\b(idemtest|idem|asaas|zeltapay)\.([A-Z]\w*(?:\.[A-Z]\w*)?)`)
	link       = regexp.MustCompile(`\]\(([^)#]+)\)`)
)

// documents are what is written for people.
var documents = []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}

func TestEveryTestThatIsNamedExists(t *testing.T) {
	t.Parallel()
	tests := testsOf(t)
	for _, document := range documents {
		for _, name := range testName.FindAllString(read(t, document), -1) {
			if !tests[name] {
				t.Errorf("%s names %s: there is no such test", document, name)
			}
		}
	}
}

func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	tests := make(map[string]bool)
	for _, pattern := range []string{"*/*_test.go", "*/*/*_test.go"} {
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
	for _, document := range documents {
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
	for _, document := range documents {
		for _, to := range link.FindAllStringSubmatch(read(t, document), -1) {
			if strings.Contains(to[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, to[1])); err != nil {
				t.Errorf("%s: %v", document, err)
			}
		}
	}
}

// Each line of a shell block is a command that the project has.
func TestEveryCommandNamesWhatExists(t *testing.T) {
	t.Parallel()
	for _, b := range slices.Concat(blocks(t, "README.md", "sh"), blocks(t, "CONTRIBUTING.md", "sh")) {
		for line := range strings.Lines(b.text) {
			command, _, _ := strings.Cut(line, "#")
			checkCommand(t, strings.Fields(command))
		}
	}
}

func checkCommand(t *testing.T, words []string) {
	t.Helper()
	last := words[len(words)-1]
	switch command := strings.Join(words[:len(words)-1], " "); command {
	case "go get":
		if !strings.HasPrefix(read(t, "go.mod"), "module "+last+"\n") {
			t.Errorf("go get %s: that is not this module", last)
		}
	case "go run":
		if !strings.Contains(read(t, last+"/main.go"), "\npackage main\n") {
			t.Errorf("go run %s: that is not a program", last)
		}
	case "bash":
		if !strings.HasPrefix(read(t, last), "#!/usr/bin/env bash\n") {
			t.Errorf("bash %s: that is not a script", last)
		}
	case "go test", "go generate":
		if last != "./..." {
			t.Errorf("%s %s: only ./... is sure to exist", command, last)
		}
	default:
		t.Errorf("no test knows the command %q", words)
	}
}
