package asaas

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/canary"
	"github.com/paghooks/paghooks/idem/provider"
)

// OfficialAddresses returns the addresses that Asaas says it delivers from, in
// production, for AllowFrom of a [Dispatcher]. The sandbox also delivers from others, which are
// not published.
//
// See https://docs.asaas.com/docs/ips-oficiais-do-asaas.
func OfficialAddresses() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("52.67.12.206/32"),
		netip.MustParsePrefix("18.230.8.159/32"),
		netip.MustParsePrefix("54.94.136.112/32"),
		netip.MustParsePrefix("54.94.183.101/32"),
	}
}

// NewCanary returns a canary for a webhook: address is its URL at Asaas, token
// one that the receiver accepts. The token is sent there, so let it be https.
//
// With AllowFrom of the [Dispatcher] set, add the address that the canary comes from.
func NewCanary(address, token string) *canary.Canary {
	now := DateTime(time.Now().In(Brasilia()).Format(time.DateTime))
	body, _ := json.Marshal(Envelope{ID: "evt_canary_" + rand.Text(), Event: canary.EventType, DateCreated: now}) // three texts
	return canary.New(definition.Source, address, body, func(h http.Header, _ []byte) { h.Set(TokenHeader, token) })
}

// TokenHeader carries the webhook's token, as it was set at Asaas.
const TokenHeader = "Asaas-Access-Token"

// Why a delivery was refused, beside the reasons of package provider: the Reason of the
// [idem.Refusal] that [Verify] and Open of a [Dispatcher] return.
const (
	ReasonFormEncoded          idem.Reason = "form_encoded"          // the webhook has apiVersion 2
	ReasonWithdrawalValidation idem.Reason = "withdrawal_validation" // a question about a withdrawal, not an event
)

// guard refuses forms without a token, as an old apiVersion sends them, and questions about
// withdrawals: see [provider.Definition]. With the token the body counts, whatever its Content-Type says.
func guard(h http.Header, body []byte, err error) error {
	refusal, isRefusal := errors.AsType[*idem.Refusal](err)
	switch {
	case isRefusal && refusal.Reason == provider.ReasonMissingToken && isForm(h):
		return refuse(ReasonFormEncoded, "the body is a form, which carries no token: set apiVersion 3 in the webhook's configuration at Asaas; "+
			"by hand, send the headers Asaas-Access-Token and Content-Type: application/json")
	case err != nil:
		return err
	case isWithdrawalValidation(body):
		return refuse(ReasonWithdrawalValidation, "Asaas asks here whether a withdrawal may be made or a split kept, and cancels it without an answer: "+
			"point the withdrawal validation at a URL of its own, in the security settings at Asaas")
	}
	return nil
}

func isForm(h http.Header) bool {
	mediaType, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return mediaType == "application/x-www-form-urlencoded"
}

func refuse(reason idem.Reason, hint string) error {
	return &idem.Refusal{Source: "asaas", Reason: reason, Hint: hint}
}

// isToken reports whether s may be a token: an unset variable of a configuration
// is empty, or white space.
func isToken(s string) bool { return strings.TrimSpace(s) != "" }

// Canonical returns the constant of a type that Asaas also names in another way.
func (t EventType) Canonical() EventType { return canonical(t) }
