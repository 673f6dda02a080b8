// Asaas-fake delivers made-up events to your server, as Asaas does:
//
//	export ASAAS_WEBHOOK_TOKEN='the token of the webhook'
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-fake deliver PAYMENT_RECEIVED -to http://localhost:8080/webhooks/asaas \
//		-set payment.value=10.5 -set payment.externalReference=A-1001
//
// It prints how each delivery was answered. Events are delivered in the order of
// their types, each once: it does not try again. The bodies are those of package
// asaastest, which has all of Asaas's rules for tests, made today. Each command makes a new
// charge, which all its events are about; -set payment.id=… names one that is there. Events name
// no account, as those of before 2026, so that a database takes those of a real account as well;
// -set account.id=… names one. The flags of deliver, with one hyphen or two:
//
//	-to URL             where to deliver
//	-set path=value     give a field a value: JSON, else a string; again for more fields
//	-id ID              the event's id; one of its own otherwise. Made again on the same day, it is the same event,
//	                    about the same charge
//	-sparse             events with as little in them as Asaas may send
//
// The verb types prints all event types, and help VERB all about a verb.
//
// # Rehearse an outage
//
// As a server it is an Asaas to try things with by hand: its API for webhooks,
// the waits between attempts, e-mails, pauses and deletions, which it prints as
// they happen. Each event is about a charge of its own. It runs until it is interrupted.
//
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-fake serve -to http://localhost:8080/webhooks/asaas -speed 600
//	curl http://127.0.0.1:8090/fake/events/PAYMENT_RECEIVED -d payment.value=10.5 # an event happens
//	curl http://127.0.0.1:8090/fake/advance -d for=24h                            # a day passes
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
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/fixture"
)

func main() {
	command.Main(func(ctx context.Context) int { return run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr) })
}

// run is the program; it returns the exit status.
func run(ctx context.Context, args []string, getenv func(string) string, out, complaints io.Writer) int {
	events := &maker{charge: newCharge(rand.Text())}
	c := fixture.Command{
		Name:     "asaas-fake",
		Provider: "Asaas",
		Secret:   "ASAAS_WEBHOOK_TOKEN",
		To:       "http://localhost:8080/webhooks/asaas",
		Set:      "payment.value=10.5",
		ID:       "id",
		Type:     "event",
		Accepts:  func(status int) bool { return status == http.StatusOK },
		Accepted: "answered 200",
		Event:    events.newEvent,
		Request:  asaastest.Request,
		Fake:     events.newFake,
	}
	for _, eventType := range asaastest.Types() {
		c.Types = append(c.Types, string(eventType))
	}
	return c.Run(ctx, args, getenv, out, complaints)
}

// maker makes events. Those of a command are about one charge; a server's have a charge each.
type maker struct {
	charge string
	serves bool
}

// newCharge returns the id of a charge, which is the same for the same text.
func newCharge(text string) string {
	hash := sha256.Sum256([]byte(text))
	return "pay_1_" + base32.StdEncoding.EncodeToString(hash[:])[:14]
}

// newEvent makes an event of today. It names no account: package charges would park the events of the developer's own
// account after it.
func (m *maker) newEvent(name, id string, sparse bool, changes ...asaastest.Change) ([]byte, error) {
	eventType := asaas.EventType(name)
	if !slices.Contains(asaastest.Types(), eventType) {
		return nil, fmt.Errorf("there is no event type %q: asaas-fake types prints them all", name)
	}
	charge := m.charge
	switch {
	case id != "":
		charge = newCharge(id)
	case m.serves:
		charge = newCharge(rand.Text())
	}
	changes = slices.Concat([]asaastest.Change{asaastest.Delete("account")}, today(eventType, id, charge), changes)
	if sparse {
		return asaastest.Sparse(eventType, changes...), nil
	}
	return asaastest.Event(eventType, changes...), nil
}

// today has an event, and the charge that it is about, be made now: of an older charge a table of charges does not know
// what was booked before it was made. An event with a given id happened when the day began: it may be made again, and
// Asaas sends an event again as it was.
func today(eventType asaas.EventType, id, charge string) []asaastest.Change {
	at := time.Now().In(asaas.Brasilia())
	day := at.Format(time.DateOnly)
	changes := []asaastest.Change{stamp("", at)}
	if id != "" {
		changes = []asaastest.Change{asaastest.Set("id", id), asaastest.Set("dateCreated", day+" 00:00:00")}
	}
	if strings.HasPrefix(string(eventType), "PAYMENT_") {
		changes = append(changes, asaastest.Set("payment.dateCreated", day), asaastest.Set("payment.id", charge))
	}
	return changes
}

// newFake makes an Asaas on the machine's time, until its clock runs.
func (m *maker) newFake(f fixture.FakeOptions) (*fixture.Served, error) {
	m.serves = true
	fake := asaastest.New()
	fake.Advance(max(0, time.Since(fake.Now())))
	fake.Observe = func(e asaastest.Entry) { f.Tell(e.String()) }
	hints := []string{
		"Asaas's API is at http://" + f.Address + "/v3: export ASAAS_API_KEY='" + fake.APIKey + "' ASAAS_BASE_URL=http://" + f.Address + "/v3",
		"asaas-queue status -sandbox  # the state of the queues",
	}
	if f.To != "" {
		id := fake.AddWebhook(asaastest.Webhook{Name: "served", URL: f.To, Token: f.Secret})
		hints = append(hints, "asaas-queue recover -sandbox "+id+"  # the webhook that delivers to "+f.To)
	}
	return &fixture.Served{Fake: fake, API: fake, Stamp: stamp, Hints: hints}, nil
}

func stamp(_ string, now time.Time) fixture.Change {
	return asaastest.Set("dateCreated", now.In(asaas.Brasilia()).Format(time.DateTime))
}
