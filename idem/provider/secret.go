package provider

import (
	"slices"
	"strings"

	"github.com/paghooks/paghooks/idem"
)

// canVerify reports whether a secret has the form that the scheme needs.
func canVerify(scheme Scheme, secret string) bool {
	ok := isSecret(secret)
	switch scheme := scheme.(type) {
	case RSA:
		_, ok = publicKey(secret)
	case HMAC:
		_, ok = scheme.key(secret)
	}
	return ok
}

// isSecret reports whether s is a secret, and not an unset variable.
func isSecret(s string) bool { return strings.TrimSpace(s) != "" }

// terms are a scheme's words in refusals.
type terms struct {
	secret           string
	wrong, ambiguous idem.Reason
	compare          string // the remedy if no secret verifies
	malformed        string // the fault of a secret in the wrong form, and the remedy
}

func termsOf(scheme Scheme) terms {
	if _, ok := scheme.(Token); ok {
		return terms{secret: "token", wrong: ReasonWrongToken, ambiguous: ReasonAmbiguousToken, compare: "the token is not the one configured: compare it with the webhook's at the provider"}
	}
	if _, ok := scheme.(RSA); ok {
		return terms{
			"public key", ReasonWrongSignature, ReasonAmbiguousSecret,
			"no public key verifies this delivery: compare the key with the provider's, and see that nothing changes the body on the way",
			"no RSA keys as PEM: give all of the provider's public key, from -----BEGIN PUBLIC KEY----- to -----END PUBLIC KEY-----",
		}
	}
	return terms{
		"secret", ReasonWrongSignature, ReasonAmbiguousSecret,
		"no secret verifies this delivery: compare the secret with the provider's, without spaces or line breaks, and see that nothing changes the body on the way",
		"no keys in base64: give all of the provider's secret, with its prefix",
	}
}

// invisible are characters that editors and copying leave in a text, and that screens do not show: a byte order mark,
// zero-width spaces, joiners and direction marks.
const invisible = "\ufeff\u200b\u200c\u200d\u2060\u200e\u200f\u00ad"

// quotes are pairs of quotation marks around a secret.
var quotes = []string{`""`, `''`, "``", "“”", "‘’", "«»", "„“"}

// oddity returns the remedy for a secret with white space, quotes or invisible characters, which the provider does not
// send; "" if it has none. A key in PEM may have them.
func (t terms) oddity(secret string) string {
	fault := ""
	switch plain := strings.TrimSpace(secret); {
	case t.secret == "public key":
		return ""
	case strings.ContainsAny(secret, invisible):
		fault = "has invisible characters, such as a byte order mark or a zero-width space: remove them, for example by typing it anew"
	case plain != secret:
		fault = "begins or ends with a space or a line break, which the provider does not send: remove it"
	case slices.ContainsFunc(quotes, func(pair string) bool { return inQuotes(plain, []rune(pair)) }):
		fault = "is in quotes, which count as a part of it: remove them"
	default:
		return ""
	}
	return "a configured " + t.secret + " " + fault
}

func inQuotes(s string, pair []rune) bool {
	in := []rune(s)
	return len(in) >= 2 && in[0] == pair[0] && in[len(in)-1] == pair[1]
}
