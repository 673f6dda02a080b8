package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/internal/shown"
	"github.com/paghooks/paghooks/idem/value"
)

// NewPlan compares the webhook at Asaas with the types that the application handles:
// whether it exists, is enabled and not stopped, its URL, order, apiVersion and
// token, and its event types against the handlers of d. It changes nothing.
//
//	plan, err := webhook.NewPlan(ctx, client, want, events)
//	fmt.Println(plan)
//	applied, err := plan.Apply(ctx)
//
// The webhook is found by its name and by its URL, in the list of all. Asaas
// promises that neither is unique: if several match, that is the difference, and
// nothing is applied until a person has left one.
//
// An event type that d ignores is neither subscribed to nor removed. One that is
// neither handled nor ignored nor in want.Types is a difference, and its removal
// is for good: events of it are not made any more. A type that this version of the
// module does not know is kept. d may be nil; then want.Types count alone.
//
// The error is an [*asaas.APIError] if a call failed. Otherwise it names the mistake in
// the settings.
//
// See https://docs.asaas.com/docs/create-new-webhook-via-api.
func NewPlan(ctx context.Context, client *asaas.Client, want Settings, d *asaas.Dispatcher) (*Plan, error) {
	var all []*asaas.Webhook
	for w, err := range client.Webhooks(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	p, err := planFor(client, all, want, d)
	if err != nil {
		return nil, fmt.Errorf("webhook: NewPlan: %w", err)
	}
	return p, nil
}

// Plan is the difference between a webhook at Asaas and the application
// that it is for. [NewPlan] makes it, [Plan.Apply] carries it out.
type Plan struct {
	// Webhook is the webhook at Asaas, without its token; nil if there is none, or if
	// several match.
	Webhook *asaas.Webhook `json:"-"`

	// Differences are empty if the webhook is as the application wants it.
	Differences []Difference `json:"differences,omitempty"`

	// Kept are event types that the webhook subscribes to and that this version of
	// the module does not know. They are not different, and never removed.
	Kept []asaas.EventType `json:"kept,omitempty"`

	// LeftOut are event types that the application handles and that the webhook neither has nor is to
	// get, because the settings say so. They are not different.
	LeftOut []asaas.EventType `json:"left_out,omitempty"`

	client     *asaas.Client
	want       func() Settings // a function, so that printing shows no token
	dispatcher *asaas.Dispatcher
	types      []asaas.EventType   // that the webhook is to get
	update     asaas.WebhookUpdate // the part that PUT repairs; of a token only that it is sent
}

// Difference is one way in which a webhook is not as an application
// wants it.
type Difference struct {
	// Field is the API's name of the field that differs, "events" for example; "webhook" if
	// there is none, or more than one.
	Field string `json:"field"`

	// Text is a line for people, with the consequence. It has no secret.
	Text string `json:"text"`

	// Repairable reports whether [Plan.Apply] repairs it. Asaas's API cannot
	// change everything.
	Repairable bool `json:"repairable"`

	// LosesEvents reports whether events do not come, come in the wrong order, or
	// are refused, until it is repaired. Monitoring turns red for these.
	LosesEvents bool `json:"loses_events"`
}

// String is the text, with how it is repaired.
func (d Difference) String() string {
	if d.Repairable {
		return d.Text + " (apply repairs it)"
	}
	return d.Text + " (not repaired by apply)"
}

// Differs reports whether the webhook is not as the application wants it.
func (p *Plan) Differs() bool { return len(p.Differences) > 0 }

// String is the plan as people read it: a line for each difference, with its
// consequence and whether Apply repairs it.
func (p *Plan) String() string {
	lines := []string{fmt.Sprintf("webhook %q at %s:", p.shown(p.want().Name), shown.Place(p.want().URL))}
	if p.Webhook != nil {
		lines[0] = "webhook " + p.named(p.Webhook) + ":"
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
	if len(p.LeftOut) > 0 {
		lines = append(lines, "  left out, and never delivered: "+joined(p.LeftOut))
	}
	return strings.Join(lines, "\n")
}

// shown returns a text of Asaas's, fit for people.
func (p *Plan) shown(text string) string {
	return shown.Clean(text, p.want().Token)
}

func (p *Plan) named(w *asaas.Webhook) string {
	return fmt.Sprintf("%s (%q at %s)", p.shown(w.ID), p.shown(w.Name.Or("")), p.shown(shown.Place(w.URL.Or(""))))
}

func joined(types []asaas.EventType) string {
	var texts []string
	for _, t := range types {
		texts = append(texts, string(t))
	}
	return strings.Join(texts, ", ")
}

// planFor makes the plan for all webhooks of an account.
func planFor(client *asaas.Client, all []*asaas.Webhook, want Settings, d *asaas.Dispatcher) (*Plan, error) {
	if err := want.check(); err != nil {
		return nil, err
	}
	p := &Plan{client: client, want: func() Settings { return want }, dispatcher: d, types: wantedTypes(want, d)}
	if want.NoPixAutomatic {
		p.LeftOut = pixAutomatic(p.types)
		p.types = slices.DeleteFunc(p.types, isPixAutomatic)
	}
	if len(p.types) == 0 {
		return nil, errors.New("the application handles no event type, so that the webhook would get none: register the handlers first, or name Types")
	}
	switch found := matching(all, want); len(found) {
	case 0:
		p.add("webhook", true, fmt.Sprintf("the account has no webhook of the name %q or the URL %s: no event comes", p.shown(want.Name), shown.Place(want.URL)))
	case 1:
		p.take(found[0])
	default:
		var names []string
		for _, w := range found {
			names = append(names, p.named(w))
		}
		p.add("webhook", false, fmt.Sprintf("%d webhooks have this name or this URL: %s: each event may come several times; "+
			"leave one at Asaas, the others' queues go with them", len(found), strings.Join(names, ", ")))
	}
	return p, nil
}

// wantedTypes returns the types that the webhook is to get, sorted.
func wantedTypes(want Settings, d *asaas.Dispatcher) []asaas.EventType {
	types := slices.Clone(want.Types)
	if d != nil {
		for _, t := range d.Types() {
			types = append(types, asaas.EventType(t))
		}
	}
	for n, t := range types {
		types[n] = t.Canonical()
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// pixAutomatic returns the types of Pix Automático among types.
func pixAutomatic(types []asaas.EventType) (found []asaas.EventType) {
	for _, t := range types {
		if isPixAutomatic(t) {
			found = append(found, t)
		}
	}
	return found
}

func isPixAutomatic(t asaas.EventType) bool { return strings.HasPrefix(string(t), "PIX_AUTOMATIC_") }

// matching returns the webhooks that have the name or the URL of want.
func matching(all []*asaas.Webhook, want Settings) (found []*asaas.Webhook) {
	for _, w := range all {
		if w.Name.Or("") == want.Name || sameAddress(w.URL.Or(""), want.URL) {
			found = append(found, w)
		}
	}
	return found
}

// take compares the application's webhook, the worst first.
func (p *Plan) take(found *asaas.Webhook) {
	w := *found
	w.AuthToken = value.Optional[string]{} // some answers show it
	p.Webhook = &w
	p.compareState()
	p.compareDelivery()
	p.compareEvents()
	p.compareNames()
}

// add notes a difference that loses events.
func (p *Plan) add(field string, repairable bool, text string) {
	p.Differences = append(p.Differences, Difference{Field: field, Text: text, Repairable: repairable, LosesEvents: true})
}

// addHarmless notes a difference that loses no event.
func (p *Plan) addHarmless(field string, repairable bool, text string) {
	p.Differences = append(p.Differences, Difference{Field: field, Text: text, Repairable: repairable})
}

// losses returns the differences that lose events.
func (p *Plan) losses() (lost []Difference) {
	for _, d := range p.Differences {
		if d.LosesEvents {
			lost = append(lost, d)
		}
	}
	return lost
}

// isReported reports whether Asaas's answer has a field. A missing field is a
// difference: it does not mean that all is well.
func isReported[T any](p *Plan, field string, v value.Optional[T]) bool {
	if _, ok := v.Get(); ok {
		return true
	}
	p.add(field, false, "Asaas does not report the webhook's "+field+": look for a newer version of paghooks")
	return false
}

func (p *Plan) compareState() {
	w := p.Webhook
	if isReported(p, "enabled", w.Enabled) && !w.Enabled.Or(true) {
		p.add("enabled", true, "the webhook is disabled: Asaas makes no events for it, and those of this time never come")
		p.update.Enabled = value.Of(true)
	}
	if isReported(p, "interrupted", w.Interrupted) && w.Interrupted.Or(false) {
		p.add("interrupted", true, "the queue is stopped: nothing is delivered, and Asaas deletes what has waited for 14 days")
		p.update.Interrupted = value.Of(false)
	}
}

func (p *Plan) compareDelivery() {
	w, want := p.Webhook, p.want()
	if isReported(p, "url", w.URL) && w.URL.Or("") != want.URL {
		at, wanted := p.shown(shown.Place(w.URL.Or(""))), shown.Place(want.URL)
		text := fmt.Sprintf("events are delivered to %s, not to %s", at, wanted)
		if at == wanted {
			text = "the URL differs from the application's in its query, which is not shown"
		}
		p.add("url", true, text)
		p.update.URL = value.Of(want.URL)
	}
	if isReported(p, "apiVersion", w.APIVersion) && w.APIVersion.Or(3) != 3 {
		p.add("apiVersion", false, fmt.Sprintf("apiVersion is %d, whose deliveries do not verify: Asaas cannot change it, "+
			"so make a new webhook with apiVersion 3, and delete this one once its queue is empty", w.APIVersion.Or(3)))
	}
	if isReported(p, "hasAuthToken", w.HasAuthToken) && !w.HasAuthToken.Or(true) {
		p.compareToken()
	}
	if sent := w.SendType.Or(""); isReported(p, "sendType", w.SendType) && sent != want.sendType() {
		p.compareOrder(sent)
	}
}

func (p *Plan) compareToken() {
	if !isToken(p.want().Token) {
		p.add("authToken", false, "the webhook has no token, so its deliveries are refused: give the application's token with the settings")
		return
	}
	p.add("authToken", true, "the webhook has no token, so its deliveries are refused")
	p.update.AuthToken = value.Of("") // change sends the token
}

func (p *Plan) compareOrder(sent asaas.WebhookSendType) {
	p.update.SendType = value.Of(p.want().sendType())
	if p.want().sendType() == asaas.WebhookSendTypeSequentially {
		p.add("sendType", true, fmt.Sprintf("events are sent %s, not SEQUENTIALLY: an older event of a charge may be handled after a newer one", p.shown(string(sent))))
		return
	}
	p.addHarmless("sendType", true, fmt.Sprintf("events are sent %s, not NON_SEQUENTIALLY: one event that fails holds up all others", p.shown(string(sent))))
}

// compareEvents compares the event types, by the names that their constants have.
func (p *Plan) compareEvents() {
	if !isReported(p, "events", p.Webhook.Events) {
		return
	}
	var list, unwanted []asaas.EventType
	has := make(map[asaas.EventType]bool)
	for _, t := range p.Webhook.Events.Or(nil) {
		has[t.Canonical()] = true
	}
	p.keep(has)
	for _, t := range p.Webhook.Events.Or(nil) {
		switch {
		case p.isWanted(t):
		case !t.Canonical().Known():
			p.Kept = append(p.Kept, t)
		default:
			unwanted = append(unwanted, t)
			continue
		}
		list = append(list, t)
	}
	for _, t := range p.types {
		if !has[t] {
			p.add("events", true, fmt.Sprintf(shown.NeverComes, p.shown(string(t))))
			list = append(list, t)
		}
	}
	if len(unwanted) > 0 {
		slices.Sort(unwanted)
		p.addHarmless("events", true, fmt.Sprintf("subscribed to and not handled: %s", joined(unwanted)))
	}
	if len(list) != len(p.Webhook.Events.Or(nil)) || len(unwanted) > 0 {
		p.update.Events = value.Of(list)
	}
}

// keep has the webhook keep the types that were to be left out, and that it has.
func (p *Plan) keep(has map[asaas.EventType]bool) {
	leftOut := p.LeftOut
	p.LeftOut = nil
	for _, t := range leftOut {
		if has[t] {
			p.types = append(p.types, t)
		} else {
			p.LeftOut = append(p.LeftOut, t)
		}
	}
}

// isWanted reports whether the webhook may keep a type. An ignored type may
// come, and need not.
func (p *Plan) isWanted(t asaas.EventType) bool {
	return slices.Contains(p.types, t.Canonical()) || p.dispatcher != nil && p.dispatcher.Ignores(string(t.Canonical()))
}

func (p *Plan) compareNames() {
	w, want := p.Webhook, p.want()
	if name := w.Name.Or(""); name != want.Name {
		p.addHarmless("name", true, fmt.Sprintf("its name is %q, not %q", p.shown(name), want.Name))
		p.update.Name = value.Of(want.Name)
	}
	if email := w.Email.Or(""); want.Email != "" && !strings.EqualFold(email, want.Email) {
		p.addHarmless("email", false, "Asaas writes to another address than the settings' Email when deliveries fail: "+
			"its API cannot change that, change it on Asaas's screen")
	}
}

// sameAddress reports whether two URLs lead to the same place, however they are
// spelled.
func sameAddress(a, b string) bool { return normalAddress(a) == normalAddress(b) }

func normalAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]; port != "" {
		u.Host = strings.TrimSuffix(u.Host, port)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u.String()
}
