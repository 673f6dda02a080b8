// Zeltapay-fake delivers made-up events to your server, as Zelta Pay does:
//
//	export ZELTAPAY_WEBHOOK_SECRET='the secret of the webhook'
//	go run github.com/paghooks/paghooks/zeltapay/cmd/zeltapay-fake --to http://localhost:8080/webhooks/zeltapay \
//		payment.success --set transaction.amount=2990 --set metadata.orderId=A-1001
//
// It prints how each delivery was answered. Events are delivered in the order of their types, each once: it does not
// try again. What is sent is of package zeltapaytest, which has all of Zelta Pay's rules for tests.
//
//	--to URL            where to deliver
//	--set path=value    give a field a value: JSON, else a string; again for more fields
//	--id ID             the event's id; one of its own otherwise
//	--count N           how many events of each type
//	--twins             each event twice at the same moment
//	--sparse            events with as little in them as Zelta Pay may send
//	--layout nested     the other of the two layouts that Zelta Pay documents
//	--plain             sign the other of the two strings that Zelta Pay documents
//	--list              print all event types, and deliver nothing
//
// The secret is read from the environment, so that it is in no shell's history and no list of processes. The exit
// status is 0 if all was accepted, with a 2xx, 1 if not, 2 if zeltapay-fake was used in a wrong way.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
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
	secret := getenv("ZELTAPAY_WEBHOOK_SECRET")
	if err == nil && secret == "" {
		err = errors.New("ZELTAPAY_WEBHOOK_SECRET is not set: set it in the environment to the secret that your server verifies with")
	}
	if err != nil {
		fmt.Fprintln(complaints, "zeltapay-fake:", err)
		return 2
	}
	if bad, all := o.deliver(out, secret, bodies); bad > 0 {
		fmt.Fprintf(complaints, "zeltapay-fake: %d of %d were not accepted\n", bad, all)
		return 1
	}
	return 0
}

func list(out io.Writer) {
	for _, eventType := range zeltapaytest.Types() {
		fmt.Fprintln(out, eventType)
	}
}

// deliver sends each body once, and counts what was not accepted.
func (o *options) deliver(out io.Writer, secret string, bodies [][]byte) (bad, all int) {
	fake := zeltapaytest.New()
	defer fake.Close()
	fake.SigningTime = time.Now // the fake's clock stands still, the server's does not
	if o.plain {
		fake.Format = zeltapay.FormatPlain
	}
	fake.Observe = func(e zeltapaytest.Entry) {
		switch e.Kind {
		case zeltapaytest.Delivered, zeltapaytest.Failed, zeltapaytest.Copied:
			all++
			if e.Error != "" || zeltapaytest.Judge(e.Status) != zeltapaytest.Accept {
				bad++
			}
			fmt.Fprintln(out, line(e))
		}
	}
	fake.AddWebhook(zeltapaytest.Webhook{URL: o.to, Secret: secret})
	for range bodies {
		if o.twins {
			fake.Spoil(zeltapaytest.Twins)
		}
	}
	fake.Emit(bodies...)
	fake.Settle()
	return bad, all
}

// line says how a delivery was answered.
func line(e zeltapaytest.Entry) string {
	said := fmt.Sprint(e.Status)
	if e.Status == 0 {
		said = "no answer"
	}
	said = fmt.Sprintf("%s %s %s", said, e.EventType, e.EventID)
	if e.Kind == zeltapaytest.Copied {
		said += " (its twin)"
	}
	if why := strings.TrimSpace(e.Error + " " + e.Answer); why != "" {
		said += ": " + why
	}
	return said
}
