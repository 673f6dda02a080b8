package queue

import (
	"context"
	"fmt"
	"strconv"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// attended returns an error where a change cannot be confirmed.
func (p *program) attended() error {
	if p.yes {
		return nil
	}
	return p.command.Attended()
}

// questions are asked after the state is shown, by the verb.
var questions = map[string]string{
	"remove-penalty": "Remove its penalty, without trying the receiver?",
	"rotate":         "Give it the new token, if the receiver accepts that?",
	"resume":         "Start its queue again, without trying the receiver?",
	"recover":        "Try the receiver with events that are rolled back (its HTTP requests are real, unless it asks idem.IsDryRun), and start the queue again if it is sound?",
}

func (p *program) confirm(ctx context.Context, w *asaas.Webhook) error {
	if p.yes {
		return nil
	}
	r := newRow(w, p.lastEvent)
	question := questions[p.verb.name]
	if p.replay {
		question = "Try the receiver with events that are rolled back (its HTTP requests are real, unless it asks idem.IsDryRun), and if it is sound, start the queue again and replay what is owed?"
	}
	fmt.Fprintln(p.complaints, command.Text("%s at %s: %s, Asaas counts %s failures.", terminal.Clean(r.Name), terminal.Clean(r.URL), p.words(r), strconv.Itoa(r.Penalized)))
	return p.command.Confirm(ctx, command.Text(question))
}
