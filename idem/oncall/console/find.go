package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// freely is the number of events that a page reads without asking. That takes a fifth of a second.
const freely = 1_000_000

// history is the events of an entity, or of an id.
type history struct {
	Source string
	Events []idem.StoredEvent // in the order of arrival
	Full   bool               // there may be earlier ones
	Unread int64              // events that were not read, among which done ones may be
	First  *operator.Lookup   // the first one that is not done
}

// ofEntity returns the events of an entity. Done events are among them if there is an index for that, if the
// table is small, or if all is set.
func (s *source) ofEntity(ctx context.Context, account, key string, all bool) (h history, err error) {
	h.Source = s.name
	n, err := s.events.ScanOfKey(ctx)
	if err != nil {
		return h, err
	}
	if n < freely || all {
		h.Events, err = s.events.OfKey(ctx, only(account), key, maxShown)
		h.Full = len(h.Events) == maxShown
		return h, err
	}
	h.Unread = n
	p, err := s.events.Page(ctx, idem.Filter{States: open, Scopes: only(account), Keys: []string{key}}, operator.Place{}, maxShown)
	h.Events, h.Full = p.Events, len(p.Events) == maxShown
	slices.Reverse(h.Events)
	return h, err
}

// explain adds the reason why the first event that is not done is not.
func (s *source) explain(ctx context.Context, h *history) error {
	i := slices.IndexFunc(h.Events, isOpen)
	if i < 0 {
		return nil
	}
	l, ok, err := s.events.Lookup(ctx, h.Events[i].Scope, h.Events[i].ID)
	if err == nil && ok {
		h.First = &l
	}
	return err
}

// find looks in all sources for an event or an entity by its id.
func (v *visit) find(ctx context.Context) error {
	text := strings.TrimSpace(v.r.Form.Get("q"))
	shown := struct {
		Text    string
		Sources []history
		Unread  int64
		Charges []Charge
	}{Text: text}
	for _, s := range v.sources {
		if text == "" {
			break
		}
		h, err := s.find(ctx, text, v.r.Form.Get("all") != "")
		if err != nil {
			return err
		}
		shown.Unread = max(shown.Unread, h.Unread)
		v.hideErrors(h.Events)
		v.hideErrorsOf(h.First)
		if len(h.Events) > 0 {
			shown.Sources = append(shown.Sources, h)
		}
	}
	if len(shown.Sources) == 1 && len(shown.Sources[0].Events) == 1 && shown.Sources[0].Events[0].ID == text {
		e := shown.Sources[0].Events[0]
		v.redirect("event?" + query(field{"source", shown.Sources[0].Source}, field{"account", e.Scope}, field{"id", e.ID}))
		return nil
	}
	if v.Charges != nil && text != "" {
		var err error
		if shown.Charges, err = v.Charges(ctx, text, maxShown); err != nil {
			return err
		}
	}
	return v.render(http.StatusOK, "find", v.say("Find"), shown)
}

// Charge is a charge that [Handler].Unmatched or Charges returns: what it is known by, and no personal data.
type Charge struct {
	Source    string // of its events
	Account   string // their Scope
	ID        string // their Key
	Reference string // the application's own
	Paid      string // as people read it
	At        time.Time
}

// unmatched lists the paid charges that match nothing of the application's.
func (v *visit) unmatched(ctx context.Context) error {
	if v.Unmatched == nil {
		return refuse(http.StatusNotFound, "The application has not told this page of any charges.")
	}
	list, err := v.Unmatched(ctx, maxShown)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "unmatched", v.say("Unmatched charges"), list)
}

// find returns the events with this id, and the events of the entity with this id.
func (s *source) find(ctx context.Context, text string, all bool) (history, error) {
	named, err := s.events.WithID(ctx, text)
	if err != nil {
		return history{}, err
	}
	h, err := s.ofEntity(ctx, "", text, all)
	if err != nil {
		return h, err
	}
	if len(named) > 0 {
		h.Unread = 0 // it is found
	}
	for _, e := range h.Events {
		if e.ID != text {
			named = append(named, e)
		}
	}
	h.Events = named
	return h, s.explain(ctx, &h)
}

// entity lists all events of an entity.
func (v *visit) entity(ctx context.Context) error {
	account, key := v.r.Form.Get("account"), v.r.Form.Get("entity")
	h, err := v.source.ofEntity(ctx, account, key, v.r.Form.Get("all") != "")
	if err != nil {
		return err
	}
	if err := v.source.explain(ctx, &h); err != nil {
		return err
	}
	v.hideErrors(h.Events)
	v.hideErrorsOf(h.First)
	return v.render(http.StatusOK, "entity", v.say("Events of an entity"), struct {
		Account, Key string
		Verbs        []verb
		history
	}{account, key, offered(func(a verb) bool { return a.OnLists || a.IsOfNamed }), h})
}

// conflicts lists the events that came again with another body.
func (v *visit) conflicts(ctx context.Context) error {
	shown, all, err := v.source.events.Conflicts(ctx, maxShown)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "conflicts", v.say("Conflicts"), struct {
		All   int64
		Shown []operator.Conflict
	}{all, shown})
}
