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

// redact takes secrets out of a text: those given, and all that look like an API key.
func redact(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, redacted)
		}
	}
	return anyKey.ReplaceAllString(text, redacted)
}

// clean makes a text of others fit to be shown: without secrets, on one line,
// and short.
func clean(text string, secrets []string) string {
	text = strings.Map(printable, redact(text, secrets))
	if runes := []rune(text); len(runes) > maxSaid {
		text = string(runes[:maxSaid]) + "…"
	}
	return text
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
