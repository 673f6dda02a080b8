package asaas

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/idem"
)

// TokenHeader carries the webhook's token, as it was set at Asaas.
const TokenHeader = "Asaas-Access-Token"

// Verify checks that a delivery carries one of the tokens, and that it is an
// event. Several tokens are for a rotation; an empty one never verifies. The
// error is an [*idem.Refusal].
//
// A token is compared as it is, with its case and its spaces; net/http has
// taken the spaces around the header's value away. It is all the proof there
// is: Asaas signs nothing, neither the body nor the time.
//
// See https://docs.asaas.com/docs/sobre-os-webhooks.
func Verify(h http.Header, body []byte, tokens ...string) error {
	if _, err := verifyHeaders(h, []idem.Credentials{{Secrets: tokens}}); err != nil {
		return err
	}
	return verifyBody(body)
}

// verifyHeaders returns the scope of the account whose token was sent.
func verifyHeaders(h http.Header, accounts []idem.Credentials) (scope string, err error) {
	if isForm(h) && !hasToken(h) {
		return "", refuse(ReasonFormEncoded, "the body is a form, which carries no token: set apiVersion 3 in the webhook's configuration at Asaas; "+
			"by hand, send the headers Asaas-Access-Token and Content-Type: application/json")
	}
	if err := configured(accounts); err != nil {
		return "", err
	}
	token, err := sentToken(h)
	if err != nil {
		return "", err
	}
	if scope, err = scopeOf(token, accounts); err == nil && isForm(h) {
		return "", refuse(ReasonNotJSON, "the Content-Type says that the body is a form, as curl -d does unasked: add -H 'Content-Type: application/json'")
	}
	return scope, err
}

// verifyBody refuses a body that is not for a receiver of events.
func verifyBody(body []byte) error {
	if isWithdrawalValidation(body) {
		return refuse(ReasonWithdrawalValidation, "Asaas asks here whether a withdrawal may be made or a split kept, and cancels it without an answer: "+
			"point the withdrawal validation at a URL of its own, in the security settings at Asaas")
	}
	return nil
}

func isForm(h http.Header) bool {
	mediaType, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return mediaType == "application/x-www-form-urlencoded"
}

// configured tells apart the ways to have nothing to verify with, all of them
// a mistake in the deployment.
func configured(accounts []idem.Credentials) error {
	secrets := 0
	for _, a := range accounts {
		if slices.ContainsFunc(a.Secrets, isToken) {
			return nil
		}
		secrets += len(a.Secrets)
	}
	switch {
	case len(accounts) == 0:
		return refuse(ReasonUnknownAccount, "no account may send this request: see what Accounts returns for it")
	case secrets == 0:
		return refuse(ReasonNotConfigured, "no token was given: give the webhook's token")
	}
	return refuse(ReasonNotConfigured, fmt.Sprintf("the tokens given (%d) are empty: is the environment variable set?", secrets))
}

// isToken tells a token from what an unset variable in a configuration turns
// into.
func isToken(s string) bool { return strings.TrimSpace(s) != "" }

func hasToken(h http.Header) bool { return len(sentTokens(h)) > 0 }

func sentTokens(h http.Header) (sent []string) {
	for name, values := range h {
		// API gateways hand on headers in lower case.
		if strings.EqualFold(name, TokenHeader) {
			sent = append(sent, values...)
		}
	}
	return sent
}

func sentToken(h http.Header) (string, error) {
	sent := sentTokens(h)
	switch {
	case len(sent) > 1:
		return "", refuse(ReasonSeveralTokens, "asaas-access-token is there more than once, Asaas sends it once: see what a proxy adds")
	case len(sent) == 0 || sent[0] == "":
		return "", refuse(ReasonMissingToken, "there is no asaas-access-token: set a token in the webhook's configuration at Asaas, and see whether a proxy drops it")
	}
	return sent[0], nil
}

// scopeOf finds the account whose token was sent. It compares all of them,
// always, so that its duration tells nothing.
func scopeOf(sent string, accounts []idem.Credentials) (string, error) {
	var scopes []string
	hint := "the token is not the one configured: compare it with the webhook's at Asaas"
	for _, a := range accounts {
		for _, token := range a.Secrets {
			if same(sent, token) && !slices.Contains(scopes, a.Scope) {
				scopes = append(scopes, a.Scope)
			}
			if strings.TrimSpace(token) != token {
				hint = "a configured token begins or ends with a space or a line break, which Asaas does not send: take it away"
			}
		}
	}
	switch len(scopes) {
	case 0:
		return "", refuse(ReasonWrongToken, hint)
	case 1:
		return scopes[0], nil
	}
	return "", refuse(ReasonAmbiguousToken, "the token belongs to accounts of different scopes: give each account's webhook a token of its own; those of NewDispatcher have no scope")
}

// same compares hashes, so that not even the length of a token shows.
func same(sent, token string) bool {
	a, b := sha256.Sum256([]byte(sent)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && isToken(token)
}
