package asaas

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/idem"
)

// misses returns lines about events that the webhook does not bring to an application that relies on
// it: a type that has a handler and is not subscribed to, and the order where there is no
// inbox.
func misses(w *Webhook, events []EventStore) (lines []string) {
	subscribed, told := w.Events.Get()
	has := make(map[EventType]bool)
	for _, t := range subscribed {
		has[canonical(t)] = true
	}
	for _, store := range events {
		handler, ok := store.(interface{ Types() []string })
		if !ok || !told {
			continue
		}
		for _, t := range handler.Types() {
			if line := fmt.Sprintf(neverComes, t); !has[canonical(EventType(t))] && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	sent := w.SendType.Or(WebhookSendTypeSequentially)
	if isInline := func(s EventStore) bool { _, yes := s.(*idem.Processor); return yes }; sent != WebhookSendTypeSequentially && slices.ContainsFunc(events, isInline) {
		lines = append(lines, fmt.Sprintf(outOfOrder, strings.Map(printable, string(sent))))
	}
	return lines
}
