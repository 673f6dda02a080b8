package asaas

import (
	"fmt"
	"strings"
)

// WebhookPlan is the difference between a webhook at Asaas and the application
// that it is for. [PlanWebhook] makes it, [WebhookPlan.Apply] carries it out.
type WebhookPlan struct {
	// Webhook is the webhook at Asaas, without its token; nil if there is none, or if
	// several match.
	Webhook *Webhook

	// Differences are empty if the webhook is as the application wants it.
	Differences []WebhookDifference

	// Kept are event types that the webhook subscribes to and that this version of
	// the module does not know. They are not different, and never removed.
	Kept []EventType

	client     *Client
	want       func() WebhookSettings // a function, so that printing shows no token
	dispatcher *Dispatcher
	types      []EventType   // that the webhook is to get
	update     WebhookUpdate // the part that PUT repairs; of a token only that it is sent
}

// WebhookDifference is one way in which a webhook is not as an application
// wants it.
type WebhookDifference struct {
	// Field is the API's name of the field that differs, "events" for example; "webhook" if
	// there is none, or more than one.
	Field string `json:"field"`

	// Text is a line for people, with the consequence. It has no secret.
	Text string `json:"text"`

	// Repairable reports whether [WebhookPlan.Apply] repairs it. Asaas's API cannot
	// change everything.
	Repairable bool `json:"repairable"`

	// LosesEvents reports whether events do not come, come in the wrong order, or
	// are refused, until it is repaired. Monitoring turns red for these.
	LosesEvents bool `json:"loses_events"`
}

// String is the text, with how it is repaired.
func (d WebhookDifference) String() string {
	if d.Repairable {
		return d.Text + " (apply repairs it)"
	}
	return d.Text + " (not repaired by apply)"
}

// Differs reports whether the webhook is not as the application wants it.
func (p *WebhookPlan) Differs() bool { return len(p.Differences) > 0 }

// String is the plan as people read it: a line for each difference, with its
// consequence and whether Apply repairs it.
func (p *WebhookPlan) String() string {
	lines := make([]string, 0, 2+len(p.Differences))
	switch {
	case p.Webhook != nil:
		lines = append(lines, fmt.Sprintf("webhook %s, %q at %s:", p.shown(p.Webhook.ID), p.shown(p.Webhook.Name.Or("")), p.shown(placeOfText(p.Webhook.URL.Or("")))))
	default:
		lines = append(lines, fmt.Sprintf("webhook %q at %s:", p.shown(p.want().Name), placeOfText(p.want().URL)))
	}
	for _, d := range p.Differences {
		lines = append(lines, "  - "+d.String())
	}
	if !p.Differs() {
		lines = append(lines, fmt.Sprintf("  as the application wants it: %d event types", len(p.types)))
	}
	if len(p.Kept) > 0 {
		lines = append(lines, "  kept, newer than this version of paghooks: "+p.shown(joined(p.Kept)))
	}
	return strings.Join(lines, "\n")
}

// GoString is String.
func (p *WebhookPlan) GoString() string { return p.String() }

// shown is a text of Asaas's, fit for people.
func (p *WebhookPlan) shown(text string) string {
	return failure{operation: operation{token: p.want().Token}, key: p.client.key}.clean(text)
}

func (p *WebhookPlan) listed(all []*Webhook) string {
	var parts []string
	for _, w := range all {
		parts = append(parts, fmt.Sprintf("%s (%q at %s)", p.shown(w.ID), p.shown(w.Name.Or("")), p.shown(placeOfText(w.URL.Or("")))))
	}
	return strings.Join(parts, ", ")
}

func joined(types []EventType) string {
	texts := make([]string, len(types))
	for i, t := range types {
		texts[i] = string(t)
	}
	return strings.Join(texts, ", ")
}

// add notes a difference that loses events.
func (p *WebhookPlan) add(field string, repairable bool, text string) {
	p.Differences = append(p.Differences, WebhookDifference{Field: field, Text: text, Repairable: repairable, LosesEvents: true})
}

// addHarmless notes a difference that loses no event.
func (p *WebhookPlan) addHarmless(field string, repairable bool, text string) {
	p.Differences = append(p.Differences, WebhookDifference{Field: field, Text: text, Repairable: repairable})
}

// losses are the differences that lose events.
func (p *WebhookPlan) losses() (lost []WebhookDifference) {
	for _, d := range p.Differences {
		if d.LosesEvents {
			lost = append(lost, d)
		}
	}
	return lost
}
