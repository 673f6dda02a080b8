//go:build long

package readme

import (
	"fmt"
	"go/parser"
	gotoken "go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var declares = regexp.MustCompile(`^(//.*\n)*(func|type|var|const) `)

// TestWhatARecipePrintsCompilesAsItIsCopied compiles the declarations of each chapter, with nothing but the imports
// of their file and what the page's chapters before it declare.
func TestWhatARecipePrintsCompilesAsItIsCopied(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"docs/recipes.md", "docs/database-libraries.md"} {
		files := make(map[string]string) // the declarations, by the file that they are from
		for _, b := range blocks(t, page, "go") {
			if file := b.source(); strings.HasPrefix(file, "examples/recipes/") && declares.MatchString(b.text) {
				files[file] += b.text
			}
		}
		if len(files) == 0 {
			t.Errorf("%s prints no declarations", page)
		}
		for file, code := range files {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				copied := filepath.Join(t.TempDir(), "copied.go")
				if err := os.WriteFile(copied, []byte("package copied\n"+importsFor(t, file, code)+code), 0o644); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), "go", "vet", copied)
				cmd.Dir = filepath.Join(root, "examples/recipes") // the module of the libraries
				cmd.Env = append(os.Environ(), "GOWORK=")         // go.work has this repository's own modules
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", page, err, out)
				}
			})
		}
	}
}

// importsFor returns the imports of a file that some of its code uses.
func importsFor(t *testing.T, file, code string) string {
	t.Helper()
	parsed, err := parser.ParseFile(gotoken.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var used strings.Builder
	version := regexp.MustCompile(`/v[0-9]+$`)
	for _, i := range parsed.Imports {
		from, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		name, alias := path.Base(version.ReplaceAllString(from, "")), ""
		if i.Name != nil {
			name, alias = i.Name.Name, i.Name.Name
		}
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(code) {
			fmt.Fprintf(&used, "import %s %q\n", alias, from)
		}
	}
	return used.String()
}
