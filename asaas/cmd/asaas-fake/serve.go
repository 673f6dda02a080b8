package main

import (
	"fmt"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/internal/fixture"
)

// serve makes an Asaas on the machine's time, until its clock runs.
func serve(o fixture.ServeOptions) (*fixture.Served, error) {
	fake := asaastest.New()
	fake.Advance(max(0, time.Since(fake.Now())))
	fake.Observe = func(e asaastest.Entry) { o.Print(told(e)) }
	hints := []string{
		"Asaas's API is at http://" + o.Address + "/v3: export ASAAS_API_KEY='" + fake.APIKey + "' ASAAS_BASE_URL=http://" + o.Address + "/v3",
		"asaas-queue status -sandbox  # the state of the queues",
	}
	if o.To != "" {
		var types []asaas.EventType
		for _, name := range o.Events {
			types = append(types, asaas.EventType(name))
		}
		id := fake.AddWebhook(asaastest.Webhook{Name: "served", URL: o.To, Token: o.Secret, Events: types})
		hints = append(hints, "asaas-queue recover -sandbox "+id+"  # the webhook that delivers to "+o.To)
	}
	return &fixture.Served{
		Fake: fake, API: fake, Stamp: stamp, Hints: hints,
		Timeline: func() (lines []string) {
			for _, e := range fake.Timeline() {
				lines = append(lines, told(e))
			}
			return lines
		},
	}, nil
}

func stamp(_ string, now time.Time) fixture.Change {
	return asaastest.Set("dateCreated", now.In(asaas.Brasilia()).Format(time.DateTime))
}

// told is a line for people.
func told(e asaastest.Entry) string {
	at := e.At.Format(time.DateTime)
	switch e.Kind {
	case asaastest.Emailed:
		return fmt.Sprintf("%s e-mail: %s %s was not delivered in %d attempts, of webhook %s", at, e.EventType, e.EventID, e.Attempt, e.WebhookID)
	case asaastest.Paused, asaastest.Resumed, asaastest.BackoffRemoved:
		return fmt.Sprintf("%s %s: the queue of webhook %s", at, e.Kind, e.WebhookID)
	case asaastest.Deleted:
		return e.String() + " for good, after 14 days"
	}
	return e.String()
}
