package main

import (
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/paghooks/paghooks/gen/spec"
)

//go:embed templates/events.tmpl
var eventsTemplate string

func (p provider) eventsCode() (string, error) {
	structs, err := p.declarations(spec.IsEvent)
	if err != nil {
		return "", err
	}
	families := p.Families()
	return executed("events", eventsTemplate, map[string]any{
		"EventType": p.Schemas()[spec.EventTypeName].Value.Description,
		"Families":  families,
		"Methods":   methodsOf(families),
		"Aliased":   p.hasAliases(),
		"Structs":   structs,
	})
}

// hasAliases reports whether an event type comes by other names as well.
func (p provider) hasAliases() bool {
	return slices.ContainsFunc(p.Families(), func(f spec.Family) bool {
		return slices.ContainsFunc(f.Events, func(e spec.Event) bool { return len(e.Aliases) > 0 })
	})
}

// methodsOf returns the names of the methods for all events of a family, by its struct. A family
// of one event type has none: the type's own method is the same. OnPing of an event PING leaves
// the name OnAnyPing to the family of PingEvent.
func methodsOf(families []spec.Family) map[string]string {
	out := make(map[string]string)
	taken := make(map[string]bool)
	for _, f := range families {
		for _, e := range f.Events {
			taken[e.Name] = true
		}
	}
	for _, f := range families {
		about := strings.TrimSuffix(f.Struct, "Event")
		if taken[about] {
			about = "Any" + about
		}
		if len(f.Events) > 1 {
			out[f.Struct] = "On" + about
		}
	}
	return out
}

var (
	//go:embed templates/provider.tmpl
	providerTemplate string
	//go:embed templates/test.tmpl
	testTemplate string
)

// namesOf returns a provider.Names for the events of a family, or several if some have names of their own.
func namesOf(f spec.Family) (out []string) {
	types := make(map[string][]string) // by the fields
	var all []string
	for _, e := range f.Events {
		fields := strings.Join(literal("Key", e.Keys, "ID", e.IDs, "Times", e.Times, "Test", e.Test, "Ping", e.Ping), "\n")
		if types[fields] == nil {
			all = append(all, fields)
		}
		types[fields] = append(types[fields], "string(Event"+e.Name+")")
	}
	for _, fields := range all {
		of := "[]string{" + strings.Join(types[fields], ", ") + "}"
		if len(all) == 1 && len(f.Events) > 1 {
			of = "typesOf[" + f.Struct + "]()"
		}
		out = append(out, inLines(slices.DeleteFunc(append([]string{"Types: " + of}, strings.Split(fields, "\n")...), func(field string) bool { return field == "" }), 90))
	}
	return out
}

// literal returns the fields of a composite literal, by their names and values, without those that are zero.
func literal(namesAndValues ...any) (fields []string) {
	for pair := range slices.Chunk(namesAndValues, 2) {
		if !reflect.ValueOf(pair[1]).IsZero() {
			fields = append(fields, fmt.Sprintf("%s: %#v", pair...))
		}
	}
	return fields
}

// code is a Go expression.
type code string

// GoString implements [fmt.GoStringer].
func (c code) GoString() string { return string(c) }

// schemeCode is a scheme in the generated package.
type schemeCode struct {
	Name, Does, Go string
	Other          bool // not the default
}

// providerCode renders the dispatcher, the verification and the naming of events.
func (p provider) providerCode() (string, error) {
	return executed("provider", providerTemplate, map[string]any{
		"Type": p.TypeField(), "IDs": p.Places(p.Provider.Event.ID), "Times": p.Places(p.Provider.Event.Time), "Clock": p.Clock(),
		"Ping": p.Provider.Event.Ping, "Families": p.Families(), "Aliased": p.hasAliases(), "Schemes": p.schemes(), "Headers": p.Provider.Headers,
		"Source": p.Provider.Name, "ByHand": p.Provider.Reserved,
	})
}

func (p provider) schemes() []schemeCode {
	var out []schemeCode
	for i, s := range p.Provider.Verify {
		name := "Scheme" + spec.GoName(s.Scheme)
		if slices.ContainsFunc(out, func(other schemeCode) bool { return other.Name == name }) {
			name += strconv.Itoa(i + 1)
		}
		out = append(out, schemeCode{name, doesOf(s), goScheme(s), i > 0})
	}
	return out
}

// doesOf says how a scheme verifies, with the header and the algorithm.
func doesOf(s spec.Scheme) string {
	hash := strings.ToUpper(s.Hash)
	switch s.Scheme {
	case "token":
		return "verifies deliveries by the token in " + s.Header
	case "rsa":
		return "verifies deliveries by the signature in " + s.Header + ", RSA with " + hash
	case "standard-webhooks":
		return "verifies deliveries by the code in Webhook-Signature, HMAC with SHA256"
	case "none":
		return "verifies nothing: something in front of the program does"
	}
	does := "verifies deliveries by the code in " + s.Header + ", HMAC with " + hash
	if s.TimeHeader != "" {
		does += ", and the time in " + s.TimeHeader
	}
	return does
}

func goScheme(s spec.Scheme) string {
	hash := code("crypto." + strings.ToUpper(s.Hash))
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
	var tolerance code
	if s.Tolerance > 0 {
		tolerance = code(fmt.Sprintf("%d * time.Second", s.Tolerance))
	}
	texts := s.Text
	if texts == nil {
		texts = []string{"{body}"}
	}
	fields := literal("Header", s.Header, "Hash", hash, "Texts", texts, "Base64", s.Encoding == "base64", "Value", s.Value,
		"TimeHeader", s.TimeHeader, "IDHeader", s.IDHeader, "TypeHeader", s.TypeHeader, "Tolerance", tolerance)
	return "provider.HMAC{\n" + strings.Join(fields, ",\n") + ",\n}"
}

// testCode renders the package that makes bodies and requests for tests.
func (p provider) testCode(dir string) (string, error) {
	root := spec.ModuleRoot(dir)
	mod, _ := os.ReadFile(filepath.Join(root, "go.mod"))
	module := modulePath.FindSubmatch(mod)
	if module == nil {
		return "", fmt.Errorf("gen: %s is in no module: run go mod init first", dir)
	}
	importPath := path.Join(string(module[1]), filepath.ToSlash(strings.TrimPrefix(dir, root)))
	return executed("test", testTemplate, map[string]any{
		"Package": filepath.Base(dir), "ImportPath": importPath, "Scheme": p.schemes()[0].Name, "ByHand": p.Provider.Reserved["Request"] != "",
		"Path": p.somePath(),
	})
}

var modulePath = regexp.MustCompile(`(?m)^module\s+"?([^"\s]+)`)

// somePath returns the path to the id of the entity of the first events that have one.
func (p provider) somePath() string {
	for _, f := range p.Families() {
		if len(f.Paths) > 0 {
			return f.Paths[0]
		}
	}
	return p.TypeField()
}
