package asaas

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/idem/optional"
)

// take compares the application's webhook, the worst first.
func (p *WebhookPlan) take(found *Webhook) {
	w := *found
	w.AuthToken = optional.Value[string]{} // some answers show it
	p.Webhook = &w
	p.compareState()
	p.compareDelivery()
	p.compareEvents()
	p.compareNames()
}

// isTold notes a field that Asaas does not tell: it must not pass for all is
// well.
func isTold[T any](p *WebhookPlan, field string, v optional.Value[T]) bool {
	if _, ok := v.Get(); ok {
		return true
	}
	p.add(field, false, "Asaas does not tell the webhook's "+field+": look for a newer version of paghooks")
	return false
}

func (p *WebhookPlan) compareState() {
	w := p.Webhook
	if isTold(p, "enabled", w.Enabled) && !w.Enabled.Or(true) {
		p.add("enabled", true, "the webhook is disabled: Asaas makes no events for it, and those of this time never come")
		p.update.Enabled = optional.Of(true)
	}
	if isTold(p, "interrupted", w.Interrupted) && w.Interrupted.Or(false) {
		p.add("interrupted", true, "the queue is stopped: nothing is delivered, and Asaas deletes what has waited for 14 days")
		p.update.Interrupted = optional.Of(false)
	}
}

func (p *WebhookPlan) compareDelivery() {
	w, want := p.Webhook, p.want()
	if isTold(p, "url", w.URL) && w.URL.Or("") != want.URL {
		at, wanted := p.shown(placeOfText(w.URL.Or(""))), placeOfText(want.URL)
		text := fmt.Sprintf("events are delivered to %s, not to %s", at, wanted)
		if at == wanted {
			text = "the URL differs from the application's in its query, which is not shown"
		}
		p.add("url", true, text)
		p.update.URL = optional.Of(want.URL)
	}
	if isTold(p, "apiVersion", w.APIVersion) && w.APIVersion.Or(3) != 3 {
		p.add("apiVersion", false, fmt.Sprintf("apiVersion is %d, whose deliveries do not verify: Asaas cannot change it, "+
			"so make a new webhook with apiVersion 3, and delete this one once its queue is empty", w.APIVersion.Or(3)))
	}
	if isTold(p, "hasAuthToken", w.HasAuthToken) && !w.HasAuthToken.Or(true) {
		p.compareToken()
	}
	if sent := w.SendType.Or(""); isTold(p, "sendType", w.SendType) && sent != want.sendType() {
		p.compareOrder(sent)
	}
}

func (p *WebhookPlan) compareToken() {
	if !isToken(p.want().Token) {
		p.add("authToken", false, "the webhook has no token, so its deliveries are refused: give the application's token with the settings")
		return
	}
	p.add("authToken", true, "the webhook has no token, so its deliveries are refused")
	p.update.AuthToken = optional.Of("") // change sends the token
}

// What is said of a webhook, wherever it is said.
const (
	outOfOrder = "events are sent %s, not SEQUENTIALLY: an older event of a charge may be handled after a newer one"
	neverComes = "%s is handled and not subscribed to: it never comes"
)

func (p *WebhookPlan) compareOrder(sent WebhookSendType) {
	p.update.SendType = optional.Of(p.want().sendType())
	if p.want().sendType() == WebhookSendTypeSequentially {
		p.add("sendType", true, fmt.Sprintf(outOfOrder, p.shown(string(sent))))
		return
	}
	p.addHarmless("sendType", true, fmt.Sprintf("events are sent %s, not NON_SEQUENTIALLY: one event that fails holds up all others", p.shown(string(sent))))
}

// compareEvents compares the event types, by the names that their constants have.
func (p *WebhookPlan) compareEvents() {
	if !isTold(p, "events", p.Webhook.Events) {
		return
	}
	var list, unwanted []EventType
	has := make(map[EventType]bool)
	for _, t := range p.Webhook.Events.Or(nil) {
		has[canonical(t)] = true
		switch {
		case p.isWanted(t):
		case !canonical(t).Known():
			p.Kept = append(p.Kept, t)
		default:
			unwanted = append(unwanted, t)
			continue
		}
		list = append(list, t)
	}
	for _, t := range p.types {
		if !has[t] {
			p.add("events", true, fmt.Sprintf(neverComes, p.shown(string(t))))
			list = append(list, t)
		}
	}
	if len(unwanted) > 0 {
		slices.Sort(unwanted)
		p.addHarmless("events", true, fmt.Sprintf("subscribed to and not handled: %s", joined(unwanted)))
	}
	if len(list) != len(p.Webhook.Events.Or(nil)) || len(unwanted) > 0 {
		p.update.Events = optional.Of(list)
	}
}

// isWanted reports whether the webhook may keep a type. An ignored type may
// come, and need not.
func (p *WebhookPlan) isWanted(t EventType) bool {
	return slices.Contains(p.types, canonical(t)) || p.dispatcher != nil && p.dispatcher.Ignores(string(canonical(t)))
}

func (p *WebhookPlan) compareNames() {
	w, want := p.Webhook, p.want()
	if name := w.Name.Or(""); name != want.Name {
		p.addHarmless("name", true, fmt.Sprintf("its name is %q, not %q", p.shown(name), want.Name))
		p.update.Name = optional.Of(want.Name)
	}
	if email := w.Email.Or(""); want.Email != "" && !strings.EqualFold(email, want.Email) {
		p.addHarmless("email", false, "Asaas writes to another address than the settings' Email when deliveries fail: "+
			"its API cannot change that, change it on Asaas's screen")
	}
}
