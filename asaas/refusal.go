package asaas

import (
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/provider"
)

// Why a delivery was refused: the Reason of the [idem.Refusal] that [Verify]
// and [Dispatcher.Open] return.
const (
	ReasonNotConfigured                    = idem.ReasonNotConfigured               // there is no token to verify with
	ReasonUnknownAccount                   = provider.ReasonUnknownAccount          // Accounts knows no account that may send this
	ReasonMissingToken                     = provider.ReasonMissingToken            // no asaas-access-token, or an empty one
	ReasonSeveralTokens                    = provider.ReasonSeveralTokens           // asaas-access-token more than once
	ReasonWrongToken                       = provider.ReasonWrongToken              // not a token of this application
	ReasonAmbiguousToken                   = provider.ReasonAmbiguousToken          // the token belongs to two scopes
	ReasonFormEncoded          idem.Reason = "form_encoded"                         // the webhook has apiVersion 2
	ReasonNotJSON              idem.Reason = "content_type_is_not_application_json" // genuine, but the Content-Type says that it is a form
	ReasonWithdrawalValidation idem.Reason = "withdrawal_validation"                // a question about a withdrawal, not an event
	ReasonAddressNotAllowed    idem.Reason = "address_not_allowed"                  // sent from outside of AllowFrom
)
