package zeltapay

import "github.com/paghooks/paghooks/idem"

// Why a delivery was refused: the Reason of the [idem.Refusal] that [Verify]
// and [Dispatcher.Open] return.
const (
	ReasonNotConfigured                  = idem.ReasonNotConfigured // there is no secret to verify with
	ReasonUnknownAccount     idem.Reason = "unknown_account"        // Accounts knows no account that may send this
	ReasonDuplicateHeader    idem.Reason = "duplicate_header"       // one header, several times
	ReasonMissingSignature   idem.Reason = "missing_signature"      // no Zeltapay-Signature
	ReasonMalformedSignature idem.Reason = "malformed_signature"    // not t=…, v1=…
	ReasonMissingTimestamp   idem.Reason = "missing_timestamp"      // a bare signature without Zeltapay-Timestamp
	ReasonMalformedTimestamp idem.Reason = "malformed_timestamp"    // not Unix seconds in digits
	ReasonTimestampMismatch  idem.Reason = "timestamp_mismatch"     // StrictHeaders: Zeltapay-Timestamp is not the signature's t
	ReasonStale              idem.Reason = "stale"                  // signed too long ago
	ReasonFuture             idem.Reason = "future"                 // signed too far in the future
	ReasonWrongSignature     idem.Reason = "wrong_signature"        // no secret gives this signature
	ReasonAmbiguousSecret    idem.Reason = "ambiguous_secret"       // the secret belongs to two scopes
	ReasonEventIDMismatch    idem.Reason = "event_id_mismatch"      // StrictHeaders: Zeltapay-Event-Id is not the body's eventId
	ReasonEventTypeMismatch  idem.Reason = "event_type_mismatch"    // StrictHeaders: Zeltapay-Event-Type is not the body's type
)
