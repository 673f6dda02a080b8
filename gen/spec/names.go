package spec

import (
	"strings"
	"unicode"
)

// initialisms are the words that Go writes in capitals. Pix and Cpf are names
// and stay as they are.
var initialisms = map[string]bool{
	"api": true, "html": true, "http": true, "https": true, "id": true, "ip": true,
	"jcb": true, "json": true, "ok": true, "pdf": true, "uri": true, "url": true,
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
			if startsWord(runes, i) {
				out = append(out, string(runes[start:i]))
				start = i
			}
		}
		out = append(out, string(runes[start:]))
	}
	return out
}

func isSeparator(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// startsWord reports whether a word starts at i: a capital after something else,
// or the last capital of a run that goes on in lower case (URLPath).
func startsWord(runes []rune, i int) bool {
	if !unicode.IsUpper(runes[i]) {
		return false
	}
	return !unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

func capitalize(word string) string {
	word = strings.ToLower(word)
	if initialisms[word] {
		return strings.ToUpper(word)
	}
	runes := []rune(word)
	runes[0] = unicode.ToUpper(runes[0])
	return string(runes)
}
