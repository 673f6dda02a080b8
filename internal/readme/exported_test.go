package readme

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// qualified is a name of a package's in inline code: `asaas.Client.Try`.
var qualified = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)

// former is the part of a document, to its end, with names that are gone.
var former = regexp.MustCompile(`(?ms)^#+ Renamed and removed$.*`)

func TestEveryNameThatADocumentGivesIsExported(t *testing.T) {
	t.Parallel()
	packages := exported(t)
	members := make(map[string]bool) // of all packages: a type may embed one of another
	for _, names := range packages {
		maps.Copy(members, names)
	}
	checked := 0
	for _, document := range documents(t) {
		text := former.ReplaceAllString(read(t, document), "")
		for _, code := range inlineCode.FindAllString(text, -1) {
			for _, name := range qualified.FindAllStringSubmatch(code, -1) {
				names, ok := packages[name[1]]
				if !ok {
					continue // of another module, or a variable
				}
				checked++
				if !names[name[2]] || name[3] != "" && !members[name[3]] {
					t.Errorf("%s: %s exports no %s", document, name[1], name[0])
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d names were found", checked)
	}
}

// exported returns what each package that users import exports: names, and those of methods and fields.
func exported(t *testing.T) map[string]map[string]bool {
	t.Helper()
	packages := make(map[string]map[string]bool)
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "internal" || name == "examples" || len(name) > 1 && name[0] == '.') {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(gotoken.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil || parsed.Name.Name == "main" {
			return err
		}
		names := packages[path.Base(path.Dir(file))]
		if names == nil {
			names = make(map[string]bool)
			packages[path.Base(path.Dir(file))] = names
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				names[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			case *ast.Field:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}
