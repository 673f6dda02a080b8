package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/internal/shown"
	"github.com/paghooks/paghooks/idem/value"
)

// Applied holds the changes of [Plan.Apply].
type Applied struct {
	// Webhook is the webhook as it is now, without its token; nil if it was not
	// read.
	Webhook *asaas.Webhook `json:"-"`
	// Did are the changes, a line each; empty if nothing was changed.
	Did []string `json:"did,omitempty"`
	// Next has a line for each thing that a person has to do now: events that were not made
	// while the webhook was disabled have to be looked for.
	Next []string `json:"next,omitempty"`
	// Left are the differences that remain.
	Left []Difference `json:"left,omitempty"`
}

// String returns a line for each change, each difference that is left, and each thing to do next.
func (a Applied) String() string {
	lines := slices.Clone(a.Did)
	if len(lines) == 0 {
		lines = []string{"nothing was changed"}
	}
	for _, d := range a.Left {
		lines = append(lines, "still different: "+d.String())
	}
	for _, n := range a.Next {
		lines = append(lines, "next: "+n)
	}
	return strings.Join(lines, "\n")
}

// Apply repairs the differences that Asaas's API can repair, in one call, and
// creates the webhook if there is none. Then it reads the webhook again and
// returns the differences that are left. It never deletes a webhook: the events in
// its queue would be lost.
//
// It does exactly the changes that the plan shows: if the webhook or the handlers have changed
// since then, nothing is changed, and the error asks for a new plan.
//
// A token is sent, and the URL changed, only if the receiver there accepts the
// token of the settings: Apply sends it a dry run first, an event of a canary that
// no handler gets; see [idem.DryRunHeader].
//
// A failed call is an [*asaas.APIError]: its Outcome reports whether it may have been
// done; run a new plan then. The changes made before an error are in the result. If types of Pix
// Automático may be the reason, the error is a [*TypesError].
func (p *Plan) Apply(ctx context.Context) (Applied, error) {
	applied := Applied{Webhook: p.Webhook, Left: p.Differences}
	err := p.apply(ctx, &applied)
	if err == nil {
		return applied, nil
	}
	if _, isCall := errors.AsType[*asaas.APIError](err); isCall {
		return applied, err
	}
	return applied, fmt.Errorf("webhook: Apply: %w", err)
}

func (p *Plan) apply(ctx context.Context, applied *Applied) error {
	if p.Webhook == nil && !p.isCreation() {
		return errors.New("nothing was changed: " + p.Differences[0].Text)
	}
	if !p.isCreation() && reflect.ValueOf(p.update).IsZero() {
		return nil
	}
	now, err := NewPlan(ctx, p.client, p.want(), p.dispatcher)
	switch {
	case err != nil:
		return err
	case !p.isStill(now):
		return errors.New("nothing was changed: the webhook or the handlers have changed since the plan was made: make a new plan, and look at it")
	}
	if err := p.prove(ctx); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	id, err := p.change(ctx)
	if err != nil {
		return p.refused(err)
	}
	p.describe(applied)
	return p.look(ctx, id, applied)
}

// isCreation reports whether there is no webhook.
func (p *Plan) isCreation() bool {
	return p.Webhook == nil && len(p.Differences) == 1 && p.Differences[0].Repairable
}

// isStill reports whether two plans are the same.
func (p *Plan) isStill(now *Plan) bool {
	id := func(p *Plan) string {
		if p.Webhook == nil {
			return ""
		}
		return p.Webhook.ID
	}
	return id(p) == id(now) && reflect.DeepEqual(p.Differences, now.Differences) && slices.Equal(p.Kept, now.Kept) && slices.Equal(p.LeftOut, now.LeftOut) &&
		reflect.DeepEqual(p.update, now.update)
}

// prove sends the token to the receiver, if the token changes.
func (p *Plan) prove(ctx context.Context) error {
	switch {
	case p.isCreation() && !isToken(p.want().Token):
		return errors.New("a new webhook needs a token: give the one that the application verifies with")
	case p.isCreation() && strings.TrimSpace(p.want().Email) == "":
		return errors.New("a new webhook needs an Email: give the address that Asaas writes to when deliveries fail")
	case !isToken(p.want().Token):
		return nil
	case p.isCreation(), !p.update.AuthToken.IsZero(), !p.update.URL.IsZero():
		return proveToken(ctx, p.client, p.want().URL, p.want().Token)
	}
	return nil
}

// proveToken has the receiver verify an event of a canary with the token, and
// roll it back.
func proveToken(ctx context.Context, client *asaas.Client, address, token string) error {
	way := asaas.NewCanary(address, token)
	way.Transport = client.Receiver
	if _, err := way.DryRun(ctx, nil); err != nil {
		return fmt.Errorf("the receiver at %s does not accept the token: %w", strings.ReplaceAll(shown.Place(address), token, shown.Redacted), err)
	}
	return nil
}

// change makes the one call that changes something.
func (p *Plan) change(ctx context.Context) (id string, err error) {
	if !p.isCreation() {
		update := p.update
		if !update.AuthToken.IsZero() {
			update.AuthToken = value.Of(p.want().Token)
		}
		_, err := p.client.UpdateWebhook(ctx, p.Webhook.ID, update)
		return p.Webhook.ID, err
	}
	created, err := p.client.CreateWebhook(ctx, asaas.WebhookCreate{
		Name: p.want().Name, URL: p.want().URL, Email: p.want().Email, AuthToken: value.Of(p.want().Token),
		SendType: p.want().sendType(), Events: p.types,
	})
	if err != nil {
		return "", err
	}
	return created.ID, nil
}

// TypesError is the error of [Plan.Apply] if Asaas refused the webhook as a whole, and the webhook was to
// get new event types of Pix Automático, which an account without that feature cannot subscribe to. Nothing
// was changed. If the account does not have it, set [Settings].NoPixAutomatic, and make a new plan.
type TypesError struct {
	Types []asaas.EventType // of Pix Automático, that the webhook did not have
	Err   *asaas.APIError
}

// Error names the types, and the remedy.
func (e *TypesError) Error() string {
	return e.Err.Error() + "; if the account does not have Pix Automático, Asaas refuses these types, and the webhook with them: " + joined(e.Types) +
		": leave them out with NoPixAutomatic, or asaas-queue apply -no-pix-automatic"
}

// Unwrap returns the [*asaas.APIError].
func (e *TypesError) Unwrap() error { return e.Err }

// refused returns the error of a change, with the types that may be the reason.
func (p *Plan) refused(err error) error {
	types := pixAutomatic(p.types)
	if !p.isCreation() {
		types = pixAutomatic(p.update.Events.Or(nil))
		types = slices.DeleteFunc(types, func(t asaas.EventType) bool { return slices.Contains(p.Webhook.Events.Or(nil), t) })
	}
	if e, ok := errors.AsType[*asaas.APIError](err); ok && e.Status == http.StatusBadRequest && len(types) > 0 {
		return &TypesError{Types: types, Err: e}
	}
	return err
}

// describe notes the changes, and the steps that are left to a person.
func (p *Plan) describe(applied *Applied) {
	if p.isCreation() {
		applied.Did = append(applied.Did, fmt.Sprintf("the webhook was created: %d event types", len(p.types)))
		applied.Next = append(applied.Next, "run a reconcile from the day of the first charge, unless it is today's: events from before a webhook exists never come")
		return
	}
	for _, d := range p.Differences {
		if d.Repairable {
			applied.Did = append(applied.Did, "repaired: "+d.Text)
		}
	}
	if !p.update.Enabled.IsZero() {
		applied.Next = append(applied.Next, "run a reconcile from the day on which the webhook was disabled, or its queue was stopped before that: "+
			"Asaas made no events while it was disabled, and they never come")
	}
	if !p.update.Interrupted.IsZero() {
		applied.Next = append(applied.Next, "run a reconcile from the day on which the queue was stopped: Asaas has deleted what waited for 14 days. "+
			"Look whether the failures fall; if they do not, fix the receiver, and run Recover")
	}
	if slices.ContainsFunc(p.Differences, func(d Difference) bool { return d.Field == "events" && d.LosesEvents }) {
		applied.Next = append(applied.Next, "run a reconcile from the day on which the application began to handle the types that were not subscribed to: "+
			"their events from before now never come")
	}
}

// look reads the webhook again.
func (p *Plan) look(ctx context.Context, id string, applied *Applied) error {
	w, err := p.client.Webhook(ctx, id)
	if err != nil {
		return fmt.Errorf("it was changed, and is not known to be right: make a new plan: %w", err)
	}
	now := *p
	now.Differences, now.Kept, now.update = nil, nil, asaas.WebhookUpdate{}
	now.take(w)
	for _, t := range p.Kept {
		if !slices.Contains(now.Kept, t) {
			now.add("events", false, p.shown(string(t))+" was subscribed to before, and is no more: subscribe to it on Asaas's screen")
		}
	}
	applied.Webhook, applied.Left = now.Webhook, now.Differences
	return nil
}

// RotateToken gives a webhook a new token. The receiver must accept the new token
// before, next to the old one: RotateToken sends a dry run with it to the webhook's
// own URL, an event of a canary that no handler gets, and changes nothing unless
// that is accepted.
//
// So a rotation has four steps, of which this is the second: the application accepts
// both tokens (see [asaas.NewDispatcher]); RotateToken; wait until the queue is empty and
// deliveries have come with the new token; the application accepts the new one alone.
// Asaas does not document with which token it delivers waiting events, so that a person
// ends the old one, not this function.
//
// A failed call is an [*asaas.APIError]: its Outcome reports whether the token may have
// been changed. While both are accepted nothing is lost in either case.
func RotateToken(ctx context.Context, client *asaas.Client, webhookID, newToken string) error {
	w, err := client.Webhook(ctx, webhookID)
	if err != nil {
		return err
	}
	switch {
	case !isToken(newToken):
		return errors.New("webhook: RotateToken: nothing was changed: the new token is empty: give the one that the application accepts besides the old one")
	case w.APIVersion.Or(3) == 2:
		return errors.New("webhook: RotateToken: nothing was changed: the webhook has apiVersion 2, whose deliveries carry no token: make a new webhook with apiVersion 3")
	}
	if err := proveToken(ctx, client, w.URL.Or(""), newToken); err != nil {
		return fmt.Errorf("webhook: RotateToken: nothing was changed: %w", err)
	}
	if _, err = client.UpdateWebhook(ctx, webhookID, asaas.WebhookUpdate{AuthToken: value.Of(newToken)}); err != nil {
		return err
	}
	w, err = client.Webhook(ctx, webhookID)
	if e, ok := errors.AsType[*asaas.APIError](err); ok {
		e.Outcome = asaas.CallUnknown // that of the reading would deny the change
		return fmt.Errorf("webhook: RotateToken: the token was changed, and the webhook could not be read after that: "+
			"accept both tokens, and see at Asaas whether the webhook has one: %w", e)
	}
	if err == nil && !w.HasAuthToken.Or(false) {
		return errors.New("webhook: RotateToken: the webhook has no token now: see it at Asaas")
	}
	return err
}

// isToken reports whether s may be a token: an unset variable of a configuration is empty, or
// white space.
func isToken(s string) bool { return strings.TrimSpace(s) != "" }
