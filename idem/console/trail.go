package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

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
	return v.render(http.StatusOK, "trail", "Audit trail", struct {
		Actions []operator.Action
		Next    int64
	}{actions, next})
}

// eventName is an event by its account and id.
type eventName struct{ Account, ID string }

// action shows a line of the trail with the events that it chose.
func (v *visit) action(ctx context.Context) error {
	n, err := id(v.r.Form.Get("id"))
	if err != nil {
		return err
	}
	actions, err := v.source.events.Actions(ctx, n+1, 1)
	if err != nil {
		return err
	}
	if len(actions) == 0 || actions[0].ID != n {
		return refuse(http.StatusNotFound, "There is no such action on events of this source.")
	}
	keys, err := v.source.events.ActionEvents(ctx, n)
	if err != nil {
		return err
	}
	var events []eventName
	for _, key := range keys[:min(len(keys), maxShown)] {
		events = append(events, named(key))
	}
	return v.render(http.StatusOK, "action", "Action", struct {
		operator.Action
		Chosen []eventName
	}{actions[0], events})
}

// named reads source/scope/id, where the scope is escaped.
func named(key string) eventName {
	_, rest, _ := strings.Cut(key, "/")
	scope, id, _ := strings.Cut(rest, "/")
	account, err := url.PathUnescape(scope)
	if err != nil {
		account = scope
	}
	return eventName{account, id}
}

func id(value string) (int64, error) {
	if value == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(value, 10, 63)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "This link is broken: begin at the first page.")
	}
	return n, nil
}
