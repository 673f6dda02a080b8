// Package queue is the command asaas-queue, for a program that has the
// application's handlers. With them it can replay the events that the application parked:
//
//	func main() {
//		events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
//		events.OnPaymentReceived(…)
//		command := queue.Command{Name: "shop-queue", Events: idem.NewProcessor(pool, events)}
//		command.Main() // shop-queue recover ID -replay
//	}
//
// All else is as github.com/paghooks/paghooks/asaas/cmd/asaas-queue says.
package queue

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/command"
)

// Command is asaas-queue. Its zero value is the one without handlers.
type Command struct {
	// Name is the name of the program. Default: "asaas-queue".
	Name string

	// Events is the application's idem.Processor or idem.Inbox, with its handlers
	// registered: owed events are read from there, and recover -replay replays
	// them. Default: nil, owed events are read from the database of DATABASE_URL, and
	// nothing can be replayed.
	Events asaas.EventStore

	// Webhook holds the webhook's settings as the application wants them, for plan and
	// apply; flags override them. Default: the zero value, the flags say it all.
	Webhook asaas.WebhookSettings

	// Dispatcher has the handlers, for plan and apply: their event types are those that the
	// webhook is to get. Default: nil, -handled names them.
	Dispatcher *asaas.Dispatcher

	// Charges has the answers of the application to reconcile: Open, Says, Scope, Types and
	// Retention. Default: the zero value, and only events are compared.
	Charges asaas.Reconciliation
}

// program is the command with its surroundings.
type program struct {
	Command
	getenv     func(string) string
	stateDir   string
	wait       func(context.Context, time.Duration) error // nil waits in real time
	zone       *time.Location                             // of times in text
	in         io.Reader
	out        io.Writer
	complaints io.Writer
	asks       bool // a person sees complaints, and can answer on in
	width      int  // of the terminal that out is, 0 if it is none

	options
	command *command.Command
	client  *asaas.Client
}

var (
	// errAttention ends a command that has printed something that needs a person.
	errAttention = command.Said(command.Attention)
	// errNotRecovered is in the errors of a queue that is still held up.
	errNotRecovered = errors.New("not recovered")
)
