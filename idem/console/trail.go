package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/operator"
)

func (v *visit) trail(ctx context.Context) error {
	before, err := id(v.r.Form.Get("before"))
	if err != nil {
		return err
	}
	actions, err := v.source.events.Actions(ctx, before, perPage)
	if err != nil {
		return err
	}
	var next int64
	if len(actions) == perPage {
		next = actions[perPage-1].ID
	}
	tried := v.source.tried.of(v.user)
	if !v.access.Reveal {
		tried = "" // it may name a person
	}
	if slices.ContainsFunc(actions, func(a operator.Action) bool { return a.Alive }) {
		v.live = liveRunning
	}
	return v.render(http.StatusOK, "trail", v.say("Audit trail"), struct {
		Actions []operator.Action
		Next    int64
		Tried   string // how this user's last dry run failed first
	}{actions, next, tried})
}

// outcome is the result of an action on an event.
type outcome struct {
	Account, ID string
	Result      string
	At          time.Time
	State       idem.State // now; "" if it is not stored any more
}

// action shows a line of the trail with its result for each of its events.
func (v *visit) action(ctx context.Context) error {
	n, err := id(v.r.Form.Get("id"))
	if err != nil {
		return err
	}
	a, ok, err := v.source.events.GetAction(ctx, n)
	switch {
	case err != nil:
		return err
	case !ok:
		return refuse(http.StatusNotFound, "There is no such action on events of this source.")
	}
	outcomes, err := v.source.outcomes(ctx, n)
	if err != nil {
		return err
	}
	if a.EndedAt.IsZero() {
		v.live = liveRunning
	}
	return v.render(http.StatusOK, "action", v.say("Action"), struct {
		operator.Action
		Outcomes  []outcome
		BrokenOff bool // it was stopped, or its process died
	}{a, outcomes, !a.Alive && (a.EndedAt.IsZero() || a.StoppedBy != "")})
}

// outcomes are the events of an action, as many as a page lists.
func (s *source) outcomes(ctx context.Context, action int64) ([]outcome, error) {
	found, err := s.events.Outcomes(ctx, action, maxShown)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(found))
	for n, o := range found {
		keys[n] = o.Event
	}
	events, err := s.events.ByKey(ctx, keys)
	if err != nil {
		return nil, err
	}
	states := map[string]idem.State{}
	for _, e := range events {
		states[rowKey(e.Source, e.Scope, e.ID)] = e.State
	}
	all := make([]outcome, len(found))
	for n, o := range found {
		e := store.EventOf(o.Event)
		all[n] = outcome{e.Scope, e.ID, o.Result, o.At, states[o.Event]}
	}
	return all, nil
}
