package command

import "github.com/paghooks/paghooks/internal/lang"

// Text formats a text for people, as fmt.Sprintf does; %s is the verb of every argument. Of an integer it writes
// 10,000, and of a duration its two largest units, 3 d 4 h.
func Text(format string, args ...any) string {
	return lang.Catalog(nil).Say(lang.English, lang.Text(format), args...)
}

// Number writes an integer for people: 10,000.
func Number(n int64) string { return lang.English.Number(n) }
