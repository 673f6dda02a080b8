package asaas

import (
	"mime"
	"net/http"
	"strings"
	"time"

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
	if err := checkForm(h); err != nil {
		return err
	}
	if err := definition.Verify(h, body, time.Now(), tokens...); err != nil {
		return err
	}
	return checkKind(h, body)
}

// checkForm refuses what a webhook with an old apiVersion sends: it has no token.
func checkForm(h http.Header) error {
	if !isForm(h) {
		return nil
	}
	if reason, _ := definition.Scheme.Check(h, time.Time{}); reason == ReasonMissingToken {
		return refuse(ReasonFormEncoded, "the body is a form, which carries no token: set apiVersion 3 in the webhook's configuration at Asaas; "+
			"by hand, send the headers Asaas-Access-Token and Content-Type: application/json")
	}
	return nil
}

// checkKind refuses what is genuine, and not for a receiver of events.
func checkKind(h http.Header, body []byte) error {
	switch {
	case isForm(h):
		return refuse(ReasonNotJSON, "the Content-Type says that the body is a form, as curl -d does unasked: add -H 'Content-Type: application/json'")
	case isWithdrawalValidation(body):
		return refuse(ReasonWithdrawalValidation, "Asaas asks here whether a withdrawal may be made or a split kept, and cancels it without an answer: "+
			"point the withdrawal validation at a URL of its own, in the security settings at Asaas")
	}
	return nil
}

func isForm(h http.Header) bool {
	const form = "application/x-www-form-urlencoded"
	is := strings.TrimSpace(h.Get("Content-Type"))
	if len(is) < len(form) || !strings.EqualFold(is[:len(form)], form) { // spares ordinary events the parsing
		return false
	}
	mediaType, _, _ := mime.ParseMediaType(is)
	return mediaType == form
}

func refuse(reason idem.Reason, hint string) error {
	return &idem.Refusal{Source: definition.Source, Reason: reason, Hint: hint}
}

// isToken tells a token from what an unset variable in a configuration turns
// into.
func isToken(s string) bool { return strings.TrimSpace(s) != "" }
