package asaas

import (
	"fmt"
	"log/slog"
)

// Format implements [fmt.Formatter]: every verb shows how many tokens there are,
// and none of them.
func (v WithdrawalValidator) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "asaas.WithdrawalValidator{%d tokens redacted}", len(v.Tokens))
}

// LogValue implements [slog.LogValuer]. It shows no token.
func (v WithdrawalValidator) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(v)) }

// MarshalJSON implements [json.Marshaler]. It shows no token.
func (v WithdrawalValidator) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%q", fmt.Sprint(v)), nil
}
