// Asaas-fake delivers made-up events to your server, as Asaas does:
//
//	export ASAAS_WEBHOOK_TOKEN='the token of the webhook'
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-fake deliver PAYMENT_RECEIVED -to http://localhost:8080/webhooks/asaas \
//		-set payment.value=10.5 -set payment.externalReference=A-1001
//
// It prints how each delivery was answered. Events are delivered in the order of
// their types, each once: it does not try again. The bodies are those of package
// asaastest, which has all of Asaas's rules for tests. The flags of deliver, with
// one hyphen or two:
//
//	-to URL             where to deliver
//	-set path=value     give a field a value: JSON, else a string; again for more fields
//	-id ID              the event's id; one of its own otherwise
//	-entity ID          the id of what the event is about, as payment.id
//	-count N            how many events of each type
//	-concurrent         each event twice at the same moment
//	-sparse             events with as little in them as Asaas may send
//
// The verb types prints all event types, and help VERB all about a verb.
//
// # Rehearse an outage
//
// As a server it is an Asaas to try things with by hand: its API for webhooks,
// the waits between attempts, e-mails, pauses and deletions, which it prints as
// they happen. It runs until it is interrupted.
//
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-fake serve -to http://localhost:8080/webhooks/asaas -speed 600
//	curl http://127.0.0.1:8090/fake/events/PAYMENT_RECEIVED -d payment.value=10.5 # an event happens
//	curl http://127.0.0.1:8090/fake/advance -d for=24h                            # a day passes
//	curl http://127.0.0.1:8090/fake/speed -d times=1                              # real time
//	curl http://127.0.0.1:8090/fake/timeline                                      # what happened so far
//
//	export ASAAS_API_KEY='$aact_hmlg_fake' ASAAS_BASE_URL=http://127.0.0.1:8090/v3
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-queue status -sandbox
//
// While a receiver works on a delivery, the fake's clock stands still. The flags
// of serve:
//
//	-listen ADDRESS     where to listen; 127.0.0.1:8090 by default
//	-to URL             add a webhook that delivers there, with the token; others are made through the API
//	-type A,B           the event types that it gets; all by default
//	-speed N            how many seconds pass in one; 1 by default, 0 stops the clock
//
// The token is read from the environment, so that it is in no shell's history
// and no list of processes.
//
// The exit status, that of all commands; of go run it is 1 for all but 0:
//
//	0    done
//	1    not done, or not all of it: stderr says why, and what was changed
//	2    used in a wrong way: nothing was done
//	3    nothing matched: nothing was done
//	4    done, and what was found needs somebody
//	130  ended by Ctrl-C before it was done; 143 by SIGTERM, 129 by SIGHUP
//
// 1 is a delivery that was not answered 200.
package main

import (
	"context"
	"flag"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/fixture"
)

func main() {
	command.Main(func(ctx context.Context) int { return run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr) })
}

// run is the program; it returns the exit status.
func run(ctx context.Context, args []string, getenv func(string) string, out, complaints io.Writer) int {
	o := new(options)
	c := fixture.Command{
		Name:     "asaas-fake",
		Provider: "Asaas",
		Secret:   "ASAAS_WEBHOOK_TOKEN",
		To:       "http://localhost:8080/webhooks/asaas",
		Set:      "payment.value=10.5",
		ID:       "id",
		Type:     "event",
		Accepted: "answered 200",
		Flags:    o.flags,
		Event:    o.event,
		Deliver:  deliver,
		Serve:    serve,
	}
	for _, eventType := range asaastest.Types() {
		c.Types = append(c.Types, string(eventType))
	}
	return c.Run(ctx, args, getenv, out, complaints)
}

func (o *options) flags(flags *flag.FlagSet) {
	flags.StringVar(&o.entity, "entity", "", "the `ID` of what the event is about, as payment.id")
}

func deliver(d fixture.Delivery) {
	fake := asaastest.New()
	defer fake.Close()
	fake.Parallelism = 1
	fake.Observe = func(e asaastest.Entry) {
		switch e.Kind {
		case asaastest.Delivered, asaastest.Failed, asaastest.Copied:
			d.Tell(answer(e))
		}
	}
	fake.AddWebhook(asaastest.Webhook{URL: d.To, Token: d.Secret, SendType: asaastest.NonSequentially})
	if d.Concurrent {
		fake.Inject(slices.Repeat([]asaastest.Fault{asaastest.Concurrent}, len(d.Bodies))...)
	}
	fake.Emit(d.Bodies...)
	fake.Settle()
}

func answer(e asaastest.Entry) fixture.Answer {
	return fixture.Answer{
		EventType: string(e.EventType), EventID: e.EventID,
		Status: e.Status, Body: e.Answer, Error: e.Error,
		Copy:     e.Kind == asaastest.Copied,
		Accepted: e.Status == http.StatusOK && e.Error == "",
	}
}
