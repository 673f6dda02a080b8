package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// value is a text or a number on a line of indented JSON, behind its name if it
// has one.
var value = regexp.MustCompile(`(?m)^(\s*(?:"(?:[^"\\]|\\.)*": )?)("?)(?:(?:[^"\\]|\\.)*"|-?[0-9][^,\n]*)(,?)$`)

// Mask returns a JSON body, indented, with every text and number replaced by dots.
// Names of fields, true, false and null stay. If the body is not JSON, or nested more
// than 50 deep, Mask returns only its length.
func Mask(body []byte) []byte {
	indented, ok := indent(body)
	if !ok {
		return fmt.Appendf(nil, "not JSON, or too deep, %d bytes", len(body))
	}
	return value.ReplaceAll(indented, []byte("$1$2•••$2$3"))
}

// whole returns a body as it can be shown: JSON indented, with its numbers as they
// were sent.
func whole(body []byte) string {
	if indented, ok := indent(body); ok {
		body = indented
	}
	return strings.ToValidUTF8(string(body), "\uFFFD")
}

// maxDepth bounds the indentation of a body.
const maxDepth = 50

func indent(body []byte) ([]byte, bool) {
	depth, inText, escaped := 0, false, false
	for _, b := range body {
		switch {
		case escaped:
			escaped = false
		case b == '\\':
			escaped = inText
		case b == '"':
			inText = !inText
		case inText:
		case b == '[', b == '{':
			depth++
		case b == ']', b == '}':
			depth--
		}
		if depth > maxDepth {
			return nil, false
		}
	}
	var out bytes.Buffer
	err := json.Indent(&out, bytes.TrimSpace(body), "", "  ")
	return out.Bytes(), err == nil
}
