package queue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
)

func TestEventsListsWhatIsSubscribedTo(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	fine, _, _, _ := a.webhooks()
	if status, out, complaints := a.queue(t, "events", fine); status != 0 || out != "PAYMENT_RECEIVED\nPAYMENT_OVERDUE\n" || complaints != "" {
		t.Errorf("exit status %d, prints %q, %q", status, out, complaints)
	}
	status, out, _ := a.queue(t, "events", fine, "-json")
	golden(t, "events.json", out)
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// printedBy are the event types of a dispatcher, in the ways to print them.
func printedBy(d *asaas.Dispatcher) map[string]string {
	return map[string]string{
		"one per line":  strings.Join(d.Routes.Types(), "\n") + "\n",
		"fmt":           fmt.Sprintln(d.Routes.Types()),
		"JSON":          fmt.Sprintf("%q", d.Routes.Types()),
		"from Windows":  strings.Join(d.Routes.Types(), "\r\n"),
		"with repeats":  strings.Repeat(strings.Join(d.Routes.Types(), " ")+" ", 2),
		"JSON, a comma": `["PAYMENT_RECEIVED","PAYMENT_REFUNDED"]`,
	}
}

func TestEventsFindsWhatIsHandledAndNotSubscribedTo(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	fine, _, _, _ := a.webhooks()
	d := asaas.NewDispatcher()
	ignore := func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil }
	d.OnPaymentReceived(ignore)
	d.OnPaymentRefunded(ignore)
	for way, text := range printedBy(d) {
		file := filepath.Join(t.TempDir(), "types")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, out, complaints := a.queue(t, "events", "-handled", file, fine)
		golden(t, "events_handled.txt", out)
		stdinStatus, fromStdin, _ := a.queueAnswering(t, &text, "events", "-handled=-", fine)
		if status != 4 || stdinStatus != 4 || fromStdin != out || complaints != "" {
			t.Errorf("%s: exit status %d, %d from stdin, %q", way, status, stdinStatus, complaints)
		}
	}
	received := "PAYMENT_RECEIVED"
	status, out, _ := a.queueAnswering(t, &received, "events", "-handled=-", "-json", fine)
	golden(t, "events_handled.json", out)
	if status != 0 {
		t.Errorf("all that is handled is subscribed to: exit status %d", status)
	}
}

func TestHandledTypesThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	fine, _, _, _ := a.webhooks()
	for text, says := range map[string]string{
		"":                             "there is no event type in it",
		"[]\n":                         "there is no event type in it",
		"PAYMENT_RECEIVED\npayment ok": `"payment" is no event type such as PAYMENT_RECEIVED`,
	} {
		if status, out, complaints := a.queueAnswering(t, &text, "events", fine, "-handled", "-"); status != 2 || out != "" || !strings.Contains(complaints, says) {
			t.Errorf("%q: exit status %d, %q, %q", text, status, out, complaints)
		}
	}
	if status, _, complaints := a.queue(t, "events", fine, "-handled", "no such file"); status != 2 || !strings.Contains(complaints, "no such file") {
		t.Errorf("exit status %d, %q", status, complaints)
	}
}
