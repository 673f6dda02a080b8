package asaas

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
)

// WebhookSettings is a webhook as an application wants it, for [PlanWebhook].
// Printing or logging it shows no token.
type WebhookSettings struct {
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

	// SendType is the order of deliveries. Default: SEQUENTIALLY, which an
	// [idem.Processor] relies on.
	SendType WebhookSendType

	// Types are event types that the webhook gets besides those that the
	// application handles: for another program behind the same URL, for example.
	Types []EventType
}

// String implements [fmt.Stringer]. It shows no token, and no part of the URL
// that may be secret.
func (s WebhookSettings) String() string {
	return fmt.Sprintf("{Name:%q URL:%q SendType:%s Types:%d}", s.Name, placeOfText(s.URL), s.sendType(), len(s.Types))
}

// Format implements [fmt.Formatter]: every verb prints String.
func (s WebhookSettings) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue implements [slog.LogValuer]. It is String.
func (s WebhookSettings) LogValue() slog.Value { return slog.StringValue(s.String()) }

func (s WebhookSettings) sendType() WebhookSendType {
	if s.SendType == "" {
		return WebhookSendTypeSequentially
	}
	return s.SendType
}

// check finds settings that no webhook can have.
func (s WebhookSettings) check() error {
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
