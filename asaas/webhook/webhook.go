// Package webhook keeps a webhook at Asaas as its application needs it:
//
//   - [NewPlan] compares the webhook with the handlers, and [Plan.Apply] repairs the webhook.
//   - [NewWatch] compares them every five minutes, for package health: a webhook that is disabled, or
//     not subscribed to a type, delivers nothing, and no delivery shows that.
//   - [RotateToken] gives the webhook a new token, once the receiver accepts the token.
//   - [NewQueues] shows and releases the queues of all webhooks, for package console and for metrics.
//
// The command asaas-queue does the same from a shell.
package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/internal/shown"
)

// Settings is a webhook as an application wants it, for [NewPlan].
// Printing or logging it shows no token.
type Settings struct {
	// Name is the webhook's name at Asaas. The webhook of this name or of this URL
	// is the application's.
	Name string

	// URL is the address that Asaas delivers to.
	URL string

	// Email is the address that Asaas writes to when deliveries fail. A new webhook
	// needs one. Default: "", that of the webhook is not compared.
	Email string

	// Token is the token that the application verifies with. A new webhook needs
	// one, and so does one that has none. Asaas does not show the token that a webhook
	// has, so this one is not compared with it: see [RotateToken].
	Token string `json:"-"`

	// SendType is the order of deliveries. Default: SEQUENTIALLY. An [idem.Inbox] orders the
	// events that have arrived with both.
	SendType asaas.WebhookSendType

	// Types are event types that the webhook gets besides those that the
	// application handles: for another program behind the same URL, for example.
	Types []asaas.EventType

	// NoPixAutomatic leaves the PIX_AUTOMATIC_* types out, although the application handles
	// them. Asaas may refuse a webhook with these types as a whole if the account does not have
	// Pix Automático; see [TypesError]. A webhook that has them already keeps them.
	NoPixAutomatic bool
}

// check finds settings that no webhook can have.
func (s Settings) check() error {
	u, err := url.Parse(s.URL)
	switch {
	case strings.TrimSpace(s.Name) == "":
		return errors.New("the settings have no Name: give the webhook's name at Asaas")
	case err != nil, u.Host == "", u.Scheme != "https" && u.Scheme != "http":
		return errors.New("the settings have no URL that events can be sent to: give one such as https://shop.example/webhooks/asaas")
	case !s.sendType().Known():
		return fmt.Errorf("there is no SendType %q: give SEQUENTIALLY or NON_SEQUENTIALLY", string(s.SendType))
	}
	return nil
}

func (s Settings) sendType() asaas.WebhookSendType {
	return cmp.Or(s.SendType, asaas.WebhookSendTypeSequentially)
}

// String implements [fmt.Stringer]. It shows no token, and no part of the URL
// that may be secret.
func (s Settings) String() string {
	return fmt.Sprintf("{Name:%q URL:%q SendType:%s Types:%d}", s.Name, shown.Place(s.URL), s.sendType(), len(s.Types))
}

// Format implements [fmt.Formatter]: every verb prints String.
func (s Settings) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue implements [slog.LogValuer]. It is String.
func (s Settings) LogValue() slog.Value { return slog.StringValue(s.String()) }
