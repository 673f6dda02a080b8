package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// weekend is the shop, and its account at Asaas.
type weekend struct {
	*account
	shop     *shop
	server   *httptest.Server
	webhook  string // its id
	timeline *timeline
}

// newWeekend has a shop serve, and Asaas deliver to it.
func newWeekend(s *shop, out io.Writer) *weekend {
	w := &weekend{
		account:  &account{Fake: asaastest.New()},
		shop:     s,
		server:   httptest.NewServer(s),
		timeline: &timeline{out: out},
	}
	w.Observe = w.timeline.observe
	w.webhook = w.AddWebhook(asaastest.Webhook{
		Name:   "shop",
		URL:    w.server.URL + "/webhooks/asaas",
		Token:  token,
		Events: []asaas.EventType{asaas.EventPaymentReceived},
	})
	return w
}

func (w *weekend) end() {
	w.Close()
	w.server.Close()
}

// say adds a line of the story to the timeline.
func (w *weekend) say(format string, args ...any) { w.timeline.say(w.Now(), format, args...) }

// check prints the content of the shop's database, and returns an error if it is wrong.
func (w *weekend) check(ctx context.Context) error {
	ledger, err := w.shop.ledger(ctx)
	if err != nil {
		return err
	}
	done, open, err := w.shop.events(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(w.timeline.out)
	printDays(w.timeline.out, ledger, w.paid)
	fmt.Fprintf(w.timeline.out, "\nThe shop knows of %d events that are done, and of %d that are not.\n", done, open)
	wrong := compare(ledger, w.paid)
	if done != len(w.paid) || open != 0 {
		wrong = errors.Join(wrong, fmt.Errorf("the shop must know of %d events that are done, and of none else", len(w.paid)))
	}
	return wrong
}
