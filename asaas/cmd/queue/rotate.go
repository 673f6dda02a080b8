package queue

import (
	"context"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/command"
)

// rotate gives the webhook the new token, once the application accepts it.
func (p *program) rotate(ctx context.Context) error {
	token := strings.TrimSpace(p.getenv("ASAAS_NEW_WEBHOOK_TOKEN"))
	if token == "" {
		return command.Usage("nothing was changed: ASAAS_NEW_WEBHOOK_TOKEN is not set: set it in the environment to the token that the application accepts beside the old one")
	}
	if err := p.attended(); err != nil {
		return err
	}
	w, err := p.client.Webhook(ctx, p.id)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if err := p.confirm(ctx, w); err != nil {
		return err
	}
	if err := asaas.RotateToken(ctx, p.client, p.id, token); err != nil {
		return err
	}
	return p.advise("the webhook has the new token; once the queue is empty and deliveries have come with it, have the application accept the new one alone")
}
