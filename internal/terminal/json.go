package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// PrintJSON writes a value as JSON and a line break, with each level indented by indent;
// "" is all in one line. What does not print is escaped, since a terminal would act on it, and so is U+FFFD, which
// versions of Go write differently.
func PrintJSON(w io.Writer, value any, indent string) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(value); err != nil {
		return err
	}
	var out bytes.Buffer
	for _, r := range text.String() {
		switch {
		case unicode.IsPrint(r) && r != utf8.RuneError, r == '\n', r == '\t': // these are between values: within texts they are escaped
			out.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		}
	}
	_, err := out.WriteTo(w)
	return err
}
