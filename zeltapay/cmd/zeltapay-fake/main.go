// Zeltapay-fake delivers made-up events to your server, as Zelta Pay does:
//
//	export ZELTAPAY_WEBHOOK_SECRET='the secret of the webhook'
//	go run github.com/paghooks/paghooks/zeltapay/cmd/zeltapay-fake deliver payment.success -to http://localhost:8080/webhooks/zeltapay \
//		-set transaction.amount=2990 -set metadata.orderId=A-1001
//
// It prints how each delivery was answered. Events are delivered in the order of their types, each once: it does not
// try again. The bodies are those of package zeltapaytest, which has all of Zelta Pay's rules for tests. The flags of
// deliver, with one hyphen or two:
//
//	-to URL             where to deliver
//	-set path=value     give a field a value: JSON, else a string; again for more fields
//	-id ID              the event's id; one of its own otherwise
//	-sparse             events with as little in them as Zelta Pay may send
//	-layout nested      the other of the two layouts that Zelta Pay documents
//
// The verb types prints all event types, and help VERB all about a verb.
//
// # Rehearse an outage
//
// As a server it is a Zelta Pay to try things with by hand: its retries and its dead-letter queue, which it prints as
// they happen. It runs until it is interrupted. Deliveries are signed with the machine's time, at any time of its own.
//
//	go run github.com/paghooks/paghooks/zeltapay/cmd/zeltapay-fake serve -to http://localhost:8080/webhooks/zeltapay
//	curl http://127.0.0.1:8090/fake/events/payment.success -d transaction.amount=2990 # an event happens
//	curl http://127.0.0.1:8090/fake/advance -d for=24h                                # a day passes
//	curl http://127.0.0.1:8090/fake/dead-letters                                      # what it gave up
//	curl -X POST http://127.0.0.1:8090/fake/dead-letters/replay                       # all of it; ?id=ID for one
//	curl http://127.0.0.1:8090/fake/timeline                                          # what happened so far
//	curl -H 'X-API-Key: any' 'http://127.0.0.1:8090/v1/payment-links?status=completed' # the links that were paid
//
// While a receiver works on a delivery, the fake's clock stands still. The flags of serve:
//
//	-listen ADDRESS     where to listen; 127.0.0.1:8090 by default
//	-to URL             where to deliver
//	-speed N            how many seconds pass in one; 1 by default, 0 stops the clock
//
// The secret is read from the environment, so that it is in no shell's history and no list of processes.
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
// 1 is a delivery that was not accepted, with a 2xx.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/fixture"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

func main() {
	command.Main(func(ctx context.Context) int { return run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr) })
}

// run is the program; it returns the exit status.
func run(ctx context.Context, args []string, getenv func(string) string, out, complaints io.Writer) int {
	o := &options{layout: zeltapaytest.Flat}
	c := fixture.Command{
		Name:     "zeltapay-fake",
		Provider: "Zelta Pay",
		Secret:   "ZELTAPAY_WEBHOOK_SECRET",
		To:       "http://localhost:8080/webhooks/zeltapay",
		Set:      "transaction.amount=2990",
		ID:       "eventId",
		Type:     "type",
		Accepts:  func(status int) bool { return status/100 == 2 },
		Accepted: "accepted",
		Flags:    o.flags,
		Event:    o.event,
		Request:  zeltapaytest.Request,
		Fake:     newFake,
	}
	for _, eventType := range zeltapaytest.Types() {
		c.Types = append(c.Types, string(eventType))
	}
	return c.Run(ctx, args, getenv, out, complaints)
}

// options holds the flags that only Zelta Pay has.
type options struct{ layout zeltapaytest.Layout }

func (o *options) flags(flags *flag.FlagSet) {
	flags.Func("layout", "flat or nested, the `layout` of the events (default flat)", o.setLayout)
}

func (o *options) setLayout(name string) error {
	o.layout = zeltapaytest.Layout(name)
	if o.layout != zeltapaytest.Flat && o.layout != zeltapaytest.Nested {
		return errors.New("there are flat and nested")
	}
	return nil
}

func (o *options) event(name, id string, sparse bool, changes ...zeltapaytest.Change) ([]byte, error) {
	if id != "" {
		changes = append(o.named(name, id, sparse), changes...)
	}
	if sparse {
		return o.layout.Sparse(zeltapay.EventType(name), changes...), nil
	}
	return o.layout.Event(zeltapay.EventType(name), changes...), nil
}

// named has an event with the same id have the same transaction, as each delivery of it has.
func (o *options) named(name, id string, sparse bool) []zeltapaytest.Change {
	named := []zeltapaytest.Change{zeltapaytest.Set("eventId", id)}
	if zeltapay.EventType(name) != zeltapay.EventPaymentSuccess || sparse {
		return named
	}
	path := "transaction.externalPaymentId"
	if o.layout == zeltapaytest.Nested {
		path = "transaction.id"
	}
	return append(named, zeltapaytest.Set(path, "txn_"+id))
}

// newFake makes a Zelta Pay that begins now, until its clock runs.
func newFake(f fixture.FakeOptions) (*fixture.Served, error) {
	if f.To == "" {
		return nil, errors.New("give -to, the URL of your server: Zelta Pay has no API to add webhooks with")
	}
	fake := zeltapaytest.New()
	fake.SigningTime = time.Now // the server's clock is its own
	fake.Observe = func(e zeltapaytest.Entry) { f.Tell(e.String()) }
	fake.AddWebhook(zeltapaytest.Webhook{URL: f.To, Secret: f.Secret})
	at := "http://" + f.Address + "/fake/dead-letters"
	return &fixture.Served{
		Fake: fake, API: fake, Stamp: stamp,
		Hints: []string{
			"Zelta Pay delivers to " + f.To,
			"its API at http://" + f.Address + "/v1 lists the links that were paid; any key will do",
			"curl " + at + "  # what it gave up",
			"curl -X POST " + at + "/replay  # all of it; ?id=ID for one",
		},
		Routes: map[string]http.HandlerFunc{
			"GET /fake/dead-letters": func(w http.ResponseWriter, _ *http.Request) {
				for _, d := range fake.DeadLetters() {
					fmt.Fprintf(w, "%s %s, attempts %d: %s, kept until %s\n", d.EventType, d.EventID, d.Attempts, d.Reason, d.Until.Format(time.DateTime))
				}
			},
			"POST /fake/dead-letters/replay": func(w http.ResponseWriter, r *http.Request) { replay(fake, w, r) },
		},
	}, nil
}

func replay(fake *zeltapaytest.Fake, w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	switch {
	case id == "":
		fixture.AnswerJSON(w, map[string]int{"replayed": fake.ReplayAll()})
	case fake.Replay(id):
		fixture.AnswerJSON(w, map[string]int{"replayed": 1})
	default:
		http.Error(w, fmt.Sprintf("there is no event %q in the dead-letter queue", id), http.StatusNotFound)
	}
}

// stamp is the time of an event; a ping has another field for it.
func stamp(eventType string, now time.Time) fixture.Change {
	path := "createdAt"
	if zeltapay.EventType(eventType) == zeltapay.EventWebhookPing {
		path = "sentAt"
	}
	return zeltapaytest.Set(path, now.UTC().Format("2006-01-02T15:04:05.000Z"))
}
