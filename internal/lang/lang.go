// Package lang says texts, numbers and durations in the reader's language:
// English, or Portuguese as in Brazil. Texts are written in English where they are used, as a
// [Text]; a [Catalog] holds their Portuguese. Commands say all in English.
package lang

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Lang is a language, as the attribute lang of HTML names it.
type Lang string

const (
	English    Lang = "en"
	Portuguese Lang = "pt-BR"
)

// Of returns the language of a tag like pt-BR or a locale like pt_BR.UTF-8. ok is false if
// there are no texts in it.
func Of(tag string) (l Lang, ok bool) {
	if n := strings.IndexAny(tag, "-_.@"); n >= 0 {
		tag = tag[:n]
	}
	switch strings.ToLower(tag) {
	case "en":
		return English, true
	case "pt":
		return Portuguese, true
	}
	return English, false
}

// OfBrowser returns the language that the header Accept-Language prefers: the one with the
// largest q, the first of several. Without one that there are texts in, it is English.
func OfBrowser(accept string) Lang {
	chosen, best := English, 0.0
	for part := range strings.SplitSeq(accept, ",") {
		tag, parameters, _ := strings.Cut(part, ";")
		tag = strings.TrimSpace(tag)
		l, ok := Of(tag)
		if q := quality(parameters); (ok || tag == "*") && q > best {
			chosen, best = l, q
		}
	}
	return chosen
}

// quality returns the q of a language range; 0 if it cannot be read.
func quality(parameters string) float64 {
	for p := range strings.SplitSeq(parameters, ";") {
		value, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(p)), "q=")
		if !ok {
			continue
		}
		q, err := strconv.ParseFloat(value, 64)
		if err != nil || !(q >= 0 && q <= 1) {
			return 0
		}
		return q
	}
	return 1
}

// Text is a text in English, or a format of package fmt for one. It is the key of its
// translation.
type Text string

// Catalog holds the Portuguese of texts.
type Catalog map[Text]string

// Say returns a text in a language. The arguments are those of its format, for which %s is
// the only verb: integers, durations and texts among them are said in the language.
func (c Catalog) Say(l Lang, t Text, args ...any) string {
	format, ok := c[t]
	if l != Portuguese || !ok {
		format = string(t)
	}
	said := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case int:
			said[i] = l.Number(int64(arg))
		case int64:
			said[i] = l.Number(arg)
		case time.Duration:
			said[i] = l.Age(arg)
		case Text:
			said[i] = c.Say(l, arg)
		default:
			said[i] = arg
		}
	}
	if len(said) == 0 {
		return format
	}
	return fmt.Sprintf(format, said...)
}

// Count says a text about a number of things, with the number as its only argument. That about
// one of them may say it without.
func (c Catalog) Count(l Lang, n int64, one, more Text) string {
	switch {
	case n != 1:
		return c.Say(l, more, n)
	case strings.Contains(string(one), "%"):
		return c.Say(l, one, n)
	}
	return c.Say(l, one)
}

// Number writes 10000 as 10,000, or as 10.000.
func (l Lang) Number(n int64) string {
	digits, separator := strconv.FormatInt(n, 10), ","
	if l == Portuguese {
		separator = "."
	}
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(digits) - 3; i > start; i -= 3 {
		digits = digits[:i] + separator + digits[i:]
	}
	return digits
}

// Age says a duration in its two largest units, which are the same in both languages.
func (l Lang) Age(d time.Duration) string {
	units := []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, u := range units {
		if d < u.of {
			continue
		}
		said := []string{l.Number(int64(d / u.of)), u.name}
		if i < 2 && d%u.of >= units[i+1].of {
			said = append(said, strconv.FormatInt(int64(d%u.of/units[i+1].of), 10), units[i+1].name)
		}
		return strings.Join(said, " ")
	}
	if l == Portuguese {
		return "menos de 1 s"
	}
	return "less than 1 s"
}
