package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/internal/fixture"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// serve makes a Zelta Pay on the machine's time, until its clock runs.
func serve(o fixture.ServeOptions) (*fixture.Served, error) {
	if o.To == "" {
		return nil, errors.New("give -to, the URL of your server: Zelta Pay has no API to add webhooks with")
	}
	var types []zeltapay.EventType
	for _, name := range o.Events {
		types = append(types, zeltapay.EventType(name))
	}
	fake := zeltapaytest.New()
	fake.SigningTime = time.Now
	fake.Observe = func(e zeltapaytest.Entry) { o.Print(e.String()) }
	fake.AddWebhook(zeltapaytest.Webhook{URL: o.To, Secret: o.Secret, Events: types})
	at := "http://" + o.Address + "/fake/dead-letters"
	return &fixture.Served{
		Fake: fake, Stamp: stamp,
		Hints: []string{
			"Zelta Pay delivers to " + o.To,
			"curl " + at + "  # what it gave up",
			"curl -X POST " + at + "/replay  # all of it; ?id=ID for one",
		},
		Routes: map[string]http.HandlerFunc{
			"GET /fake/dead-letters": func(w http.ResponseWriter, _ *http.Request) {
				fixture.AnswerJSON(w, letters(fake.DeadLetters()))
			},
			"POST /fake/dead-letters/replay": func(w http.ResponseWriter, r *http.Request) { replay(fake, w, r) },
		},
		Timeline: func() (lines []string) {
			for _, e := range fake.Timeline() {
				lines = append(lines, e.String())
			}
			return lines
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

// letter is an event in the dead-letter queue, as JSON.
type letter struct {
	ID       string              `json:"id"`
	Type     zeltapay.EventType  `json:"type"`
	Reason   zeltapaytest.Reason `json:"reason"`
	Attempts int                 `json:"attempts"`
	Until    time.Time           `json:"until"`
}

func letters(dead []zeltapaytest.DeadLetter) []letter {
	out := []letter{}
	for _, d := range dead {
		out = append(out, letter{d.EventID, d.EventType, d.Reason, d.Attempts, d.Until.UTC()})
	}
	return out
}

// stamp is the time of an event; a ping has another field for it.
func stamp(eventType string, now time.Time) fixture.Change {
	path := "createdAt"
	if zeltapay.EventType(eventType) == zeltapay.EventWebhookPing {
		path = "sentAt"
	}
	return zeltapaytest.Set(path, now.UTC().Format("2006-01-02T15:04:05.000Z"))
}
