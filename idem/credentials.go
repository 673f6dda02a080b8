package idem

import (
	"fmt"
	"log/slog"
)

// Credentials are the secrets of one account at a provider (Asaas calls them
// tokens) and the Scope that the account's events are stored under, of at most 255 bytes.
//
// Printing or logging them shows the scope and how many secrets there are,
// never a secret.
type Credentials struct {
	Scope   string
	Secrets []string // any of them verifies: the new and the old one during a rotation
}

// String implements [fmt.Stringer]. It shows no secret.
func (c Credentials) String() string {
	return fmt.Sprintf("{Scope:%q Secrets:%d redacted}", c.Scope, len(c.Secrets))
}

// Format implements [fmt.Formatter]: every verb prints String.
func (c Credentials) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(c.String())) }

// LogValue implements [slog.LogValuer]. It shows no secret.
func (c Credentials) LogValue() slog.Value {
	return slog.GroupValue(slog.String("scope", c.Scope), slog.Int("secrets", len(c.Secrets)))
}

// MarshalJSON implements [json.Marshaler]. It shows no secret.
func (c Credentials) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"scope":%q,"secrets":%d}`, c.Scope, len(c.Secrets)), nil
}
