// Package shown makes texts of others fit for people to see: package asaas and those below it show
// no secret, and nothing that moves a terminal's cursor.
package shown

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// Redacted stands for a secret.
const Redacted = "[redacted]"

// NeverComes is a line of a plan and of a recovery.
const NeverComes = "%s is handled and not subscribed to: it never comes"

const maxLength = 200 // characters

// Clean returns a text without secrets, on one line, and short.
func Clean(text string, secrets ...string) string {
	text = strings.Map(printable, Redact(text, secrets...))
	if runes := []rune(text); len(runes) > maxLength {
		text = string(runes[:maxLength]) + "…"
	}
	return text
}

// anyKey matches a text like an API key, or part of one.
var anyKey = regexp.MustCompile(`(?i)(\$|%24|\\u0024)?aact_[^\s"'<>]*`)

// Redact takes secrets out of a text: those given, and all that look like an API key.
func Redact(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, Redacted)
		}
	}
	return anyKey.ReplaceAllString(text, Redacted)
}

func printable(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case !unicode.IsPrint(r):
		return unicode.ReplacementChar
	}
	return r
}

// Place returns an address without parts that may be a secret.
func Place(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(no URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// NothingOwed is said where nothing that was delivered is left to do.
const NothingOwed = "nothing is owed of what was delivered: no event is parked, fails, or waits for another one"
