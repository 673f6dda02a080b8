package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/paghooks/paghooks/gen/spec"
)

var (
	//go:embed templates/provider.tmpl
	providerTemplate string
	//go:embed templates/test.tmpl
	testTemplate string
)

// schemeCode is a scheme in the generated package.
type schemeCode struct {
	Name, Go string
	Other    bool // not the default
}

// providerCode is the dispatcher, verification and naming of a package of which
// nothing is written by hand.
func (p provider) providerCode() (string, error) {
	type names struct{ Name, Go string }
	var events []names
	aliased := false
	for _, f := range p.Families() {
		for _, e := range f.Events {
			events = append(events, names{e.Name, namesOf(e)})
			aliased = aliased || len(e.Aliases) > 0
		}
	}
	data := map[string]any{
		"Type": p.TypeField(), "IDs": p.Places(p.Provider.Event.ID), "Times": p.Places(p.Provider.Event.Time), "Clock": p.Clock(),
		"Ping": p.Provider.Event.Ping, "Events": events, "Aliased": aliased, "Schemes": p.schemes(), "Headers": p.Provider.Headers,
		"Source": p.Provider.Name, "ByHand": p.Provider.Reserved,
	}
	return executed("provider", providerTemplate, data)
}

// namesOf is the fields of an event's provider.Names.
func namesOf(e spec.Event) string {
	var fields []string
	for _, list := range []struct {
		name  string
		paths []string
	}{{"Key", e.Keys}, {"ID", e.IDs}, {"Times", e.Times}} {
		if list.paths != nil {
			fields = append(fields, list.name+": []string{"+quotedList(list.paths)+"}")
		}
	}
	if e.Test != "" {
		fields = append(fields, "Test: "+strconv.Quote(e.Test))
	}
	if e.Ping {
		fields = append(fields, "Ping: true")
	}
	return inLines(fields, 90)
}

// inTemplates are the functions of the templates.
var inTemplates = template.FuncMap{"about": about, "clause": clause, "comment": comment, "quoted": quotedList, "when": when}

func executed(name, text string, data any) (string, error) {
	t := template.Must(template.New(name).Funcs(inTemplates).Parse(text))
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return "", fmt.Errorf("gen: the template %s is wrong, correct it: %w", name, err)
	}
	return b.String(), nil
}

func (p provider) schemes() []schemeCode {
	var out []schemeCode
	for i, s := range p.Provider.Verify {
		name := "Scheme" + spec.GoName(s.Scheme)
		if s.Scheme == "rsa" || s.Scheme == "hmac" {
			name = "Scheme" + strings.ToUpper(s.Scheme)
		}
		if p.ownDispatcher() {
			name = "s" + name[1:]
		}
		if slices.ContainsFunc(out, func(other schemeCode) bool { return other.Name == name }) {
			name += strconv.Itoa(i + 1)
		}
		out = append(out, schemeCode{name, goScheme(s), i > 0})
	}
	return out
}

// ownDispatcher reports whether the Dispatcher is written by hand, and with it the
// package of tests.
func (p provider) ownDispatcher() bool { return p.Provider.Reserved["Dispatcher"] != "" }

func goScheme(s spec.Scheme) string {
	hash := "crypto." + strings.ToUpper(s.Hash)
	switch s.Scheme {
	case "token":
		return fmt.Sprintf("provider.Token{Header: %q}", s.Header)
	case "rsa":
		return fmt.Sprintf("provider.RSA{Header: %q, Hash: %s}", s.Header, hash)
	case "standard-webhooks":
		return "provider.StandardWebhooks"
	case "none":
		return "provider.None{}"
	}
	texts := s.Text
	if texts == nil {
		texts = []string{"{body}"}
	}
	fields := []string{fmt.Sprintf("Header: %q", s.Header), "Hash: " + hash, fmt.Sprintf("Texts: %q", strings.Join(texts, "\n"))}
	if s.Encoding == "base64" {
		fields = append(fields, "Base64: true")
	}
	if s.Value != "" {
		fields = append(fields, fmt.Sprintf("Value: %q", s.Value))
	}
	if s.TimeHeader != "" {
		fields = append(fields, fmt.Sprintf("TimeHeader: %q", s.TimeHeader))
	}
	if s.Tolerance > 0 {
		fields = append(fields, fmt.Sprintf("Tolerance: %d * time.Second", s.Tolerance))
	}
	return "provider.HMAC{\n" + strings.Join(fields, ",\n") + ",\n}"
}

// testCode is the package that makes bodies and requests for tests.
func (p provider) testCode(dir string) (string, error) {
	importPath, err := importPathOf(dir)
	if err != nil {
		return "", err
	}
	return executed("test", testTemplate, map[string]any{
		"Package": filepath.Base(dir), "ImportPath": importPath, "Scheme": p.schemes()[0].Name, "ByHand": p.ownDispatcher(),
		"Path": p.somePath(),
	})
}

// somePath returns the path to the id of the entity of the first events that have one.
func (p provider) somePath() string {
	for _, f := range p.Families() {
		if len(f.Paths) > 0 {
			return f.Paths[0]
		}
	}
	return p.TypeField()
}

// importPathOf is the import path of the package in dir, from the nearest go.mod.
func importPathOf(dir string) (string, error) {
	for root := dir; ; root = filepath.Dir(root) {
		data, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if err == nil {
			below, err := filepath.Rel(root, dir)
			return path.Join(moduleOf(string(data)), filepath.ToSlash(below)), err
		}
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("gen: %s is in no module: run go mod init first", dir)
		}
	}
}

// moduleOf is the module's path in a go.mod.
func moduleOf(mod string) string {
	for line := range strings.Lines(mod) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			return strings.Trim(strings.TrimSpace(name), `"`)
		}
	}
	return ""
}
