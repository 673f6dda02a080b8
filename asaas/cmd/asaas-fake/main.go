// Asaas-fake delivers made-up events to your server, as Asaas does:
//
//	export ASAAS_WEBHOOK_TOKEN='the token of the webhook'
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-fake --to http://localhost:8080/webhooks/asaas \
//		PAYMENT_RECEIVED --set payment.value=10.5 --set payment.externalReference=A-1001
//
// It prints how each delivery was answered. Events are delivered in the order of
// their types, each once: it does not try again. What is sent is of package
// asaastest, which has all of Asaas's rules for tests.
//
//	--to URL            where to deliver
//	--set path=value    give a field a value: JSON, else a string; again for more fields
//	--id ID             the event's id; one of its own otherwise
//	--key ID            the id of what the event is about, as payment.id
//	--count N           how many events of each type
//	--twins             each event twice at the same moment
//	--sparse            events with as little in them as Asaas may send
//	--list              print all event types, and deliver nothing
//
// The token is read from the environment, so that it is in no shell's history
// and no list of processes. The exit status is 0 if all was answered 200, 1 if
// not, 2 if asaas-fake was used in a wrong way; of go run it is 1 for both.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/paghooks/paghooks/asaas/asaastest"
)

func main() { os.Exit(run(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }

// run is the program; it returns the exit status.
func run(args []string, getenv func(string) string, out, complaints io.Writer) int {
	o, err := parse(args, complaints)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil && o.list {
		list(out)
		return 0
	}
	var bodies [][]byte
	if err == nil {
		bodies, err = o.bodies()
	}
	token := getenv("ASAAS_WEBHOOK_TOKEN")
	if err == nil && token == "" {
		err = errors.New("ASAAS_WEBHOOK_TOKEN is not set: set it in the environment to the token that your server expects")
	}
	if err != nil {
		fmt.Fprintln(complaints, "asaas-fake:", err)
		return 2
	}
	if bad, all := o.deliver(out, token, bodies); bad > 0 {
		fmt.Fprintf(complaints, "asaas-fake: %d of %d were not answered 200\n", bad, all)
		return 1
	}
	return 0
}

func list(out io.Writer) {
	for _, eventType := range asaastest.Types() {
		fmt.Fprintln(out, eventType)
	}
}

// deliver sends each body once, and counts what was not answered 200.
func (o *options) deliver(out io.Writer, token string, bodies [][]byte) (bad, all int) {
	fake := asaastest.New()
	defer fake.Close()
	fake.Parallelism = 1
	fake.Observe = func(e asaastest.Entry) {
		switch e.Kind {
		case asaastest.Delivered, asaastest.Failed, asaastest.Copied:
			all++
			if e.Status != http.StatusOK || e.Error != "" {
				bad++
			}
			fmt.Fprintln(out, line(e))
		}
	}
	fake.AddWebhook(asaastest.Webhook{URL: o.to, Token: token, SendType: asaastest.NonSequentially})
	for range bodies {
		if o.twins {
			fake.Spoil(asaastest.Twins)
		}
	}
	fake.Emit(bodies...)
	fake.Settle()
	return bad, all
}

// line says how a delivery was answered.
func line(e asaastest.Entry) string {
	said := fmt.Sprint(e.Status)
	if e.Status == 0 {
		said = "no answer"
	}
	said = fmt.Sprintf("%s %s %s", said, e.EventType, e.EventID)
	if e.Kind == asaastest.Copied {
		said += " (its twin)"
	}
	if why := strings.TrimSpace(e.Error + " " + e.Answer); why != "" {
		said += ": " + why
	}
	return said
}
