package zeltapay

import (
	"fmt"
	"log/slog"
)

// Format implements [fmt.Formatter]: every verb shows what the Dispatcher is,
// and no secret.
func (d *Dispatcher) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "zeltapay.Dispatcher{%d event types, secrets redacted}", len(d.Routes.Types()))
}

// LogValue implements [slog.LogValuer]. It shows no secret.
func (d *Dispatcher) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(d)) }

// MarshalJSON implements [json.Marshaler]. It shows no secret.
func (d *Dispatcher) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", fmt.Sprint(d)), nil }

// Format implements [fmt.Formatter]: every verb shows how many secrets there
// are, and none of them.
func (v Verifier) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "zeltapay.Verifier{%d secrets redacted}", len(v.Secrets))
}

// LogValue implements [slog.LogValuer]. It shows no secret.
func (v Verifier) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(v)) }

// MarshalJSON implements [json.Marshaler]. It shows no secret.
func (v Verifier) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", fmt.Sprint(v)), nil }
