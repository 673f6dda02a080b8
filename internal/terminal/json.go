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

// PrintJSON writes a value as a line of JSON. A character that does not print is escaped, since a terminal
// would act on it, and so is U+FFFD, which versions of Go write differently.
func PrintJSON(w io.Writer, value any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	var out bytes.Buffer
	for _, r := range text.String() {
		switch {
		case unicode.IsPrint(r) && r != utf8.RuneError, r == '\n': // after the value: within texts it is escaped
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
