// Package langtest checks the catalogs of package lang.
package langtest

import (
	"context"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template/parse"

	"github.com/paghooks/paghooks/internal/lang"
)

// Whole checks the catalog of the package in the test's folder, with its templates:
// that each text it says is in the catalog and each in the catalog is said, that both
// languages have the same arguments and end alike, that each is given as many arguments as
// it has, and that templates have no words but those.
//
// In Go a text is any constant of type [lang.Text]. In templates it is the text that the functions
// say, markup and count are given.
func Whole(t *testing.T, catalog lang.Catalog, templates ...string) {
	t.Helper()
	found, err := look(t.Context(), ".", catalog, templates...)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// look returns the faults of the catalog of the package in dir, sorted.
func look(ctx context.Context, dir string, catalog lang.Catalog, templates ...string) ([]string, error) {
	u := &uses{dir: dir, said: map[lang.Text]string{}}
	if err := u.goFiles(ctx); err != nil {
		return nil, err
	}
	for _, pattern := range templates {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("langtest: %s names no templates: %w", pattern, err)
		}
		for _, file := range files {
			if err := u.template(file); err != nil {
				return nil, err
			}
		}
	}
	return u.compare(catalog), nil
}

// Of checks that a catalog holds these texts and no others, as [Whole] does.
func Of(t *testing.T, catalog lang.Catalog, texts []lang.Text) {
	t.Helper()
	u := &uses{said: map[lang.Text]string{}}
	for _, text := range texts {
		u.said[text] = "here"
	}
	for _, f := range u.compare(catalog) {
		t.Error(f)
	}
}

// compare returns the faults of the catalog of the texts that are said.
func (u *uses) compare(catalog lang.Catalog) []string {
	for text, where := range u.said {
		if catalog[text] == "" {
			u.errorf("%s: %q has no Portuguese", where, text)
		}
	}
	for text, translation := range catalog {
		if u.said[text] == "" {
			u.errorf("%q is not said anywhere", text)
		}
		if got, want := arguments(translation), arguments(string(text)); !slices.Equal(got, want) {
			u.errorf("%q has the arguments %v, its Portuguese %q has %v", text, want, translation, got)
		}
		if got, want := last(translation), last(string(text)); got != want {
			u.errorf("%q ends in %q, its Portuguese in %q", text, want, got)
		}
	}
	slices.Sort(u.found)
	return u.found
}

// last returns the mark at the end of a text; "" if it ends in a letter.
func last(text string) string {
	return text[len(strings.TrimRight(text, ".,:;?!… ")):]
}

var (
	verb = regexp.MustCompile(`%(\[\d+\])?(.)`)
	tag  = regexp.MustCompile(`(?s)<[^>]*>`)
	word = regexp.MustCompile(`\pL{2,}`)
)

// arguments returns the numbers of the arguments that a format uses, in order.
func arguments(format string) (all []string) {
	for _, v := range verb.FindAllStringSubmatch(format, -1) {
		switch {
		case v[2] != "s":
			all = append(all, "a verb other than %s")
		case v[1] != "":
			all = append(all, v[1])
		default:
			all = append(all, fmt.Sprintf("[%d]", len(all)+1))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// uses are the texts that a package says, each with a place where it does.
type uses struct {
	dir   string
	said  map[lang.Text]string
	found []string // the faults
}

func (u *uses) errorf(format string, args ...any) {
	u.found = append(u.found, fmt.Sprintf(format, args...))
}

// note records a text, and checks how many arguments follow it. Those of a text that is
// passed on have another place: -1.
func (u *uses) note(where string, text lang.Text, given int) {
	if text == "" {
		return
	}
	u.said[text] = where
	if want := len(arguments(string(text))); given >= 0 && given != want {
		u.errorf("%s: %q is given %d arguments, want %d", where, text, given, want)
	}
}

// list runs go list on the package.
func (u *uses) list(ctx context.Context, args ...string) ([]string, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list"}, append(args, ".")...)...)
	list.Dir = u.dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("langtest: go list: %w", err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

// goFiles looks through the package's files, tests apart.
func (u *uses) goFiles(ctx context.Context) error {
	listed, err := u.list(ctx, "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}")
	if err != nil {
		return err
	}
	exports := map[string]string{}
	for _, line := range listed {
		path, file, _ := strings.Cut(line, " ")
		exports[path] = file
	}
	names, err := u.list(ctx, "-f", `{{join .GoFiles "\n"}}`)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(files, filepath.Join(u.dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, f)
	}
	conf := types.Config{Importer: importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	if _, err := conf.Check("checked", files, parsed, info); err != nil {
		return err
	}
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool { return u.node(files, info, n) })
	}
	return nil
}

func (u *uses) node(files *token.FileSet, info *types.Info, n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit:
		return !isNamed(info.Types[n].Type, "Catalog")
	case *ast.CallExpr:
		signature, ok := info.Types[n.Fun].Type.(*types.Signature)
		if !ok || !signature.Variadic() || n.Ellipsis.IsValid() {
			return true
		}
		before := signature.Params().Len() - 2 // the text stands before the arguments
		if before >= 0 && before < len(n.Args) {
			if text, ok := textOf(info, n.Args[before]); ok {
				u.note(files.Position(n.Pos()).String(), text, len(n.Args)-before-1)
			}
		}
	case ast.Expr:
		if text, ok := textOf(info, n); ok {
			u.note(files.Position(n.Pos()).String(), text, -1)
			return false
		}
	}
	return true
}

func textOf(info *types.Info, e ast.Expr) (lang.Text, bool) {
	of := info.Types[e]
	if of.Value == nil || of.Value.Kind() != constant.String || !isNamed(of.Type, "Text") {
		return "", false
	}
	return lang.Text(constant.StringVal(of.Value)), true
}

func isNamed(t types.Type, name string) bool {
	named, ok := t.(*types.Named)
	return ok && named.Obj().Name() == name && named.Obj().Pkg() != nil && strings.HasSuffix(named.Obj().Pkg().Path(), "/internal/lang")
}

// template looks through a file of templates.
func (u *uses) template(file string) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	all := map[string]*parse.Tree{}
	top := parse.New(file)
	top.Mode = parse.SkipFuncCheck
	if _, err := top.Parse(string(source), "", "", all); err != nil {
		return err
	}
	all[file] = top
	for _, tree := range all {
		var rest strings.Builder
		u.nodes(file, tree.Root, &rest)
		text := tag.ReplaceAllStringFunc(verbatim.ReplaceAllString(rest.String(), ""), spoken)
		if words := word.FindAllString(text, -1); len(words) > 0 {
			u.errorf("%s: the words %q are in one language", file, words)
		}
	}
	return nil
}

var (
	attribute = regexp.MustCompile(`(?:aria-label|data-label|title|placeholder|alt)="([^"]*)"`)
	verbatim  = regexp.MustCompile(`(?s)<code>.*?</code>`)
)

// spoken returns the visible text of a tag.
func spoken(tag string) string {
	var all []string
	for _, a := range attribute.FindAllStringSubmatch(tag, -1) {
		all = append(all, a[1])
	}
	return " " + strings.Join(all, " ") + " "
}

// nodes looks through nodes, and writes all that is no action to rest.
func (u *uses) nodes(file string, list *parse.ListNode, rest *strings.Builder) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			rest.Write(n.Text)
		case *parse.ActionNode:
			u.pipe(file, n.Pipe)
		case *parse.TemplateNode:
			u.pipe(file, n.Pipe)
		case *parse.IfNode:
			u.branch(file, &n.BranchNode, rest)
		case *parse.RangeNode:
			u.branch(file, &n.BranchNode, rest)
		case *parse.WithNode:
			u.branch(file, &n.BranchNode, rest)
		}
	}
}

func (u *uses) branch(file string, b *parse.BranchNode, rest *strings.Builder) {
	u.pipe(file, b.Pipe)
	u.nodes(file, b.List, rest)
	u.nodes(file, b.ElseList, rest)
}

func (u *uses) pipe(file string, p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, c := range p.Cmds {
		for _, arg := range c.Args {
			if nested, ok := arg.(*parse.PipeNode); ok {
				u.pipe(file, nested)
			}
		}
		called, ok := c.Args[0].(*parse.IdentifierNode)
		switch {
		case ok && (called.Ident == "say" || called.Ident == "markup") && len(c.Args) > 1:
			u.given(file, c.Args[1], len(c.Args)-2)
		case ok && called.Ident == "count" && len(c.Args) > 3:
			u.given(file, c.Args[2], -1)
			u.given(file, c.Args[3], 1)
		}
	}
}

func (u *uses) given(file string, n parse.Node, arguments int) {
	if text, ok := n.(*parse.StringNode); ok {
		u.note(file, lang.Text(text.Text), arguments)
	}
}
