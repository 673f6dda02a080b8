package spec

import (
	"go/token"
	"slices"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"
)

const (
	goNameName    = "x-go-name"   // of a schema, a property or a webhook: its name in Go; in memory each property has one
	ConstantsName = "x-constants" // ConstantsName lists, in memory, the names of an enum's constants
)

// reserved are the names that a package has without its document.
var reserved = []string{
	"Dispatcher", "NewDispatcher", "Event", "UnknownEvent", "EventUnknown", EnvelopeName, EventTypeName, "Verify", "Identify", "Parse",
	"SchemeToken", "SchemeHMAC", "SchemeRSA", "SchemeStandardWebhooks", "SchemeNone",
}

// nameComponents gives each component a name of Go that no other has. The names of types that are written
// by hand are theirs.
func (n *normal) nameComponents() {
	s := n.Spec
	s.taken = make(map[string]bool)
	for _, name := range reserved {
		s.taken[name] = true
	}
	for _, f := range s.Formats {
		s.taken[f.Go] = true // a type of the package
	}
	for name := range s.Provider.Reserved {
		s.taken[name] = true
	}
	for _, name := range InOrder(n.from, SchemaOrigin) {
		v := n.from[name].Value
		if n.ownEnvelope() && (name == EnvelopeName || name == EventTypeName) || IsHandWritten(v) && v.Extensions[goTypeName] != RawType {
			s.taken[name], n.names[name] = true, name
		}
	}
	for _, name := range InOrder(n.from, SchemaOrigin) {
		if n.names[name] == "" && n.from[name].Ref == "" {
			n.names[name] = s.free(GoName(name), n.from[name].Value.Extensions)
		}
	}
}

// free takes a name of Go for the package: x-go-name, or the given one, with a suffix if another has it.
func (s *Spec) free(name string, extensions map[string]any) string {
	return unused(s.taken, goNameOf(name, extensions))
}

// goNameOf is the name of Go that extensions say, or else the given one, made valid.
func goNameOf(name string, extensions map[string]any) string {
	if own, ok := extensions[goNameName].(string); ok {
		name = own
	}
	if !token.IsIdentifier(name) || !token.IsExported(name) {
		return "X" + name // 3ds, or a name without letters
	}
	return name
}

// nameFields gives fields and constants their names of Go.
func (s *Spec) nameFields() {
	names := InOrder(s.Schemas(), SchemaOrigin)
	if i := slices.Index(names, EnvelopeName); i > 0 {
		names = append([]string{EnvelopeName}, slices.Delete(names, i, i+1)...) // its fields are every event's
	}
	for _, name := range names {
		v := s.Schemas()[name].Value
		taken := map[string]bool{"Format": true, "LogValue": true, "Check": true}
		if IsEvent(v) {
			taken[EnvelopeName] = true
			for _, p := range s.Envelope().Properties {
				taken[FieldName(p)] = true
			}
		}
		for _, property := range InOrder(v.Properties, SchemaOrigin) {
			ref := v.Properties[property]
			own := ref.Extensions
			if ref.Ref == "" {
				own = merged(own, ref.Value.Extensions)
			}
			ref.Extensions = merged(map[string]any{goNameName: unused(taken, goNameOf(GoName(property), own))}, ref.Extensions)
		}
		var constants []any
		for _, value := range v.Enum {
			text, _ := value.(string)
			constants = append(constants, unused(s.taken, name+GoName(text)))
		}
		if constants != nil {
			v.Extensions = merged(map[string]any{ConstantsName: constants}, v.Extensions)
		}
	}
}

// unused takes a name, with a suffix if it is taken.
func unused(taken map[string]bool, name string) string {
	for taken[name] {
		name += "Value"
	}
	taken[name] = true
	return name
}

// FieldName is the name of a property in Go.
func FieldName(ref *openapi3.SchemaRef) string {
	name, _ := ref.Extensions[goNameName].(string)
	return name
}

// initialisms are the words that Go writes in capitals. Pix and Cpf are names
// and stay as they are.
var initialisms = map[string]bool{
	"api": true, "hmac": true, "html": true, "http": true, "https": true, "id": true, "ip": true,
	"jcb": true, "json": true, "ok": true, "pdf": true, "rsa": true, "uri": true, "url": true,
	"usa": true, "uuid": true, "xml": true,
}

// GoName makes an exported Go name of a name in a spec: PAYMENT_RECEIVED and
// payment.received become PaymentReceived, invoiceUrl becomes InvoiceURL.
func GoName(name string) string {
	var b strings.Builder
	for _, word := range Words(name) {
		b.WriteString(capitalize(word))
	}
	return b.String()
}

// Words splits at everything that is not a letter or digit, and where a lower
// case letter is followed by a capital. A run of capitals is one word.
func Words(name string) []string {
	var out []string
	for _, part := range strings.FieldsFunc(name, isSeparator) {
		runes := []rune(part)
		start := 0
		for i := 1; i < len(runes); i++ {
			lowerIsNext := i+1 < len(runes) && unicode.IsLower(runes[i+1]) // URLPath
			if unicode.IsUpper(runes[i]) && (lowerIsNext || !unicode.IsUpper(runes[i-1])) {
				out = append(out, string(runes[start:i]))
				start = i
			}
		}
		out = append(out, string(runes[start:]))
	}
	return out
}

func isSeparator(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

func capitalize(word string) string {
	word = strings.ToLower(word)
	if initialisms[word] {
		return strings.ToUpper(word)
	}
	runes := []rune(word)
	runes[0] = unicode.ToUpper(runes[0])
	return string(runes)
}
