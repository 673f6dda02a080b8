package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// perPage is how many events or actions a page lists.
const perPage = 50

// maxShown is how many lines a page has at most that is not one of several.
const maxShown = 250

func (v *visit) events(ctx context.Context) error {
	chosen := choiceOf(v.r.Form)
	f, err := chosen.filter()
	if err != nil {
		return err
	}
	place := idem.Place{Event: v.r.Form.Get("before")}
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
		Done   []idem.StoredEvent // the event of that id, if it is not in a list any more
		First  bool
		Next   string
	}{Choice: chosen, States: open, Events: p.Events, First: place.At.IsZero()}
	if !p.Next.At.IsZero() {
		shown.Next = query(append(chosen.Fields(), field{"at", p.Next.At.Format(time.RFC3339Nano)}, field{"before", p.Next.Event})...)
	}
	if chosen.ID != "" && len(p.Events) == 0 {
		e, ok, err := v.source.events.Get(ctx, chosen.Account, chosen.ID)
		if err != nil {
			return err
		}
		if ok {
			shown.Done = append(shown.Done, e)
		}
	}
	return v.render(http.StatusOK, "events", "Events", shown)
}

// entity lists all events of an entity.
func (v *visit) entity(ctx context.Context) error {
	account, key := v.r.Form.Get("account"), v.r.Form.Get("entity")
	all, err := v.source.events.OfKey(ctx, account, key, maxShown)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "entity", "Events of an entity", struct {
		Account, Key string
		Full         bool
		Events       []idem.StoredEvent
	}{account, key, len(all) == maxShown, all})
}

// detail is one event.
type detail struct {
	idem.StoredEvent
	Open    bool // not done or discarded
	Stored  bool // its body is
	Body    string
	Shown   string // how its body is shown: "", "masked" or "whole"
	Workers bool
}

// found returns the event that the request names.
func (v *visit) found(ctx context.Context) (d detail, err error) {
	e, ok, err := v.source.events.Get(ctx, v.r.Form.Get("account"), v.r.Form.Get("id"))
	switch {
	case err != nil:
		return d, err
	case !ok:
		return d, refuse(http.StatusNotFound, "There is no such event: it never came, or was forgotten after the retention.")
	}
	done := e.State == idem.StateDone || e.State == idem.StateDiscarded
	return detail{StoredEvent: e, Open: !done, Stored: e.Payload != nil, Workers: v.source.workers}, nil
}

func (v *visit) event(ctx context.Context) error {
	d, err := v.found(ctx)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "event", "Event", d)
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
	return v.render(http.StatusOK, "event", "Event", d)
}

// reasonOf is why people say they do something, as it is worth a place in the trail.
func reasonOf(form url.Values) string {
	reason := strings.Join(strings.Fields(form.Get("reason")), " ")
	return strings.ToValidUTF8(reason[:min(len(reason), 500)], "")
}
