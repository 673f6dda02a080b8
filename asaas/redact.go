package asaas

import (
	"fmt"
	"log/slog"

	"github.com/paghooks/paghooks/idem/optional"
)

// Format implements [fmt.Formatter]: every verb shows what the Dispatcher is,
// and no token.
func (d *Dispatcher) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "asaas.Dispatcher{%d event types, secrets redacted}", len(d.Routes.Types()))
}

// LogValue implements [slog.LogValuer]. It shows no token.
func (d *Dispatcher) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(d)) }

// MarshalJSON implements [json.Marshaler]. It shows no token.
func (d *Dispatcher) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", fmt.Sprint(d)), nil }

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

// Format implements [fmt.Formatter]: every verb shows the webhook without its
// token. json.Marshal writes the token.
func (w Webhook) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), w.printed())
}

// LogValue implements [slog.LogValuer]. It shows no token.
func (w Webhook) LogValue() slog.Value { return slog.AnyValue(w.printed()) }

func (w Webhook) printed() any {
	type plain Webhook // without Format
	w.AuthToken = hidden(w.AuthToken)
	return plain(w)
}

// Format implements [fmt.Formatter]: every verb shows what is asked for without
// the token. json.Marshal writes the token.
func (w WebhookCreate) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), w.printed())
}

// LogValue implements [slog.LogValuer]. It shows no token.
func (w WebhookCreate) LogValue() slog.Value { return slog.AnyValue(w.printed()) }

func (w WebhookCreate) printed() any {
	type plain WebhookCreate
	w.AuthToken = hidden(w.AuthToken)
	return plain(w)
}

// Format implements [fmt.Formatter]: every verb shows the change without the
// token. json.Marshal writes the token.
func (u WebhookUpdate) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), u.printed())
}

// LogValue implements [slog.LogValuer]. It shows no token.
func (u WebhookUpdate) LogValue() slog.Value { return slog.AnyValue(u.printed()) }

func (u WebhookUpdate) printed() any {
	type plain WebhookUpdate
	u.AuthToken = hidden(u.AuthToken)
	return plain(u)
}

func hidden(token optional.Value[string]) optional.Value[string] {
	if _, ok := token.Get(); ok {
		return optional.Of(redacted)
	}
	return token
}
