package asaas

import (
	"regexp"
	"strings"
	"unicode"
)

const (
	maxSaid  = 200 // characters
	redacted = "[redacted]"
)

// anyKey matches a text like an API key, even another one, or part of one.
var anyKey = regexp.MustCompile(`(?i)(\$|%24|\\u0024)?aact_[^\s"'<>]*`)

// redact takes secrets out of a text.
func (f failure) redact(text string) string {
	for _, secret := range f.secrets() {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	return anyKey.ReplaceAllString(text, redacted)
}

// clean makes a text of others fit to be shown: without secrets, on one line,
// and short.
func (f failure) clean(text string) string {
	text = strings.Map(printable, f.redact(text))
	if runes := []rune(text); len(runes) > maxSaid {
		text = string(runes[:maxSaid]) + "…"
	}
	return text
}

func (f failure) secrets() []string {
	var out []string
	if f.key != nil {
		out = append(out, f.key())
	}
	if f.token != "" {
		out = append(out, f.token)
	}
	return out
}

// secretIn is the secret that a body has, "" if none.
func secretIn(body any) string {
	switch body := body.(type) {
	case WebhookCreate:
		return body.AuthToken.Or("")
	case WebhookUpdate:
		return body.AuthToken.Or("")
	}
	return ""
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
