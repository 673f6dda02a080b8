// Package lang says texts, numbers and durations in the reader's language:
// English, or Portuguese as in Brazil. Texts are written in English where they are used, as a
// [Text]; a [Catalog] holds their Portuguese. Commands say all in English.
package lang

import (
	"strconv"
	"strings"
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
