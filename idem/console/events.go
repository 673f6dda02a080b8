package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// perPage is the number of events or actions that a page lists.
const perPage = 50

func (v *visit) events(ctx context.Context) error {
	chosen := choiceOf(v.r.Form)
	f, err := chosen.filter()
	if err != nil {
		return err
	}
	place := operator.Place{Event: v.r.Form.Get("before")}
	if at := v.r.Form.Get("at"); at != "" {
		if place.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return refuse(http.StatusBadRequest, "This link to a page is broken: begin at the first.")
		}
	}
	p, err := v.source.events.Page(ctx, f, place, perPage)
	if err != nil {
		return err
	}
	shown := struct {
		Choice choice
		States []idem.State
		Events []idem.StoredEvent
		Done   []idem.StoredEvent // of that id, if it is not in a list any more, or of that entity
		Unread int64              // events that were not looked through for done ones
		First  bool
		Next   string
	}{Choice: chosen, States: open, Events: p.Events, First: place.At.IsZero()}
	if !p.Next.At.IsZero() {
		shown.Next = query(append(chosen.Fields(), field{"at", p.Next.At.Format(time.RFC3339Nano)}, field{"before", p.Next.Event})...)
	}
	switch {
	case chosen.ID != "" && len(p.Events) == 0:
		shown.Done, err = v.source.events.WithID(ctx, chosen.ID)
	case chosen.Entity != "" && chosen.ID == "" && shown.First:
		var h history
		h, err = v.source.ofEntity(ctx, chosen.Account, chosen.Entity, false)
		shown.Done, shown.Unread = slices.DeleteFunc(h.Events, isOpen), h.Unread
	}
	if err != nil {
		return err
	}
	shown.Events, shown.Done = v.errorsHidden(shown.Events), v.errorsHidden(shown.Done)
	return v.render(http.StatusOK, "events", v.say("Events"), shown)
}

// detail is one event.
type detail struct {
	operator.Lookup
	Open    bool // not done or discarded
	Stored  bool // its body is
	Body    string
	Shown   string // how its body is shown: "", "masked" or "whole"
	Workers bool
	Actions []operator.ActionOn // the last ones that touched it
	Link    string              // to the provider's page of its entity; "" for none
}

// maxActions is the number of actions that the page of an event lists.
const maxActions = 20

// found returns the event that the request names.
func (v *visit) found(ctx context.Context) (d detail, err error) {
	e, ok, err := v.source.events.Lookup(ctx, v.r.Form.Get("account"), v.r.Form.Get("id"))
	switch {
	case err != nil:
		return d, err
	case !ok:
		return d, refuse(http.StatusNotFound, "There is no such event: it never came, or was forgotten after the retention.")
	}
	touched, err := v.source.events.ActionsOn(ctx, e.Scope, e.ID, maxActions)
	if err != nil {
		return d, err
	}
	return detail{Lookup: v.errorsHiddenOf(e), Actions: touched, Link: v.link(e.StoredEvent), Open: isOpen(e.StoredEvent), Stored: e.Payload != nil, Workers: v.source.workers}, nil
}

func (v *visit) event(ctx context.Context) error {
	d, err := v.found(ctx)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "event", v.say("Event"), d)
}

// reveal shows an event with its body, once that is recorded.
func (v *visit) reveal(ctx context.Context) error {
	d, err := v.found(ctx)
	if err != nil {
		return err
	}
	d.Shown = "masked"
	if v.r.PostForm.Get("whole") != "" {
		d.Shown = "whole"
	}
	what := "id " + d.ID
	if d.Scope != "" {
		what += "; account " + d.Scope
	}
	err = v.operator().Record(ctx, "reveal", what, reasonOf(v.r.PostForm), func(context.Context) (string, error) {
		if d.Shown == "whole" {
			d.Body = whole(d.Payload)
		} else {
			d.Body = strings.ToValidUTF8(string(v.Redact(d.Source, d.Payload)), "\uFFFD")
		}
		return "shown " + d.Shown, nil
	})
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "event", v.say("Event"), d)
}

// reasonOf returns the reason that people give, as it is stored in the trail.
func reasonOf(form url.Values) string {
	reason := strings.Join(strings.Fields(form.Get("reason")), " ")
	return strings.ToValidUTF8(reason[:min(len(reason), 500)], "")
}
