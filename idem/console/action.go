package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// verbs are what may be done to events.
var verbs = map[string]verb{
	"replay": {"Replay", "Handlers process these events now, one after the other, each once.", false, func(ctx context.Context, op *idem.Operator, f idem.Filter, reason string) error {
		_, err := op.Replay(ctx, f, reason)
		return err
	}},
	"dry-run": {"Dry run", "Handlers process these events, each in a transaction that is rolled back. What handlers do outside of it does happen.", false, func(ctx context.Context, op *idem.Operator, f idem.Filter, reason string) error {
		_, err := op.DryReplay(ctx, f, reason)
		return err
	}},
	"requeue": {"Requeue", "Workers process these events again, as if they had just arrived.", false, func(ctx context.Context, op *idem.Operator, f idem.Filter, reason string) error {
		_, err := op.Requeue(ctx, f, reason)
		return err
	}},
	"discard": {"Discard", "These events are given up for good: they will not be processed, and their bodies go unless the application keeps bodies.", true, func(ctx context.Context, op *idem.Operator, f idem.Filter, reason string) error {
		_, err := op.Discard(ctx, f, reason)
		return err
	}},
}

type verb struct {
	Label, Means string
	Final        bool // cannot be undone, and needs a reason
	do           func(ctx context.Context, op *idem.Operator, f idem.Filter, reason string) error
}

// asked is an action that a form asks for.
type asked struct {
	verb
	Name   string
	Choice choice
	Filter idem.Filter
	Count  int64
	Events []idem.StoredEvent // the newest of them
}

// ask reads what a form asks for, and counts the events.
func (v *visit) ask(ctx context.Context, form url.Values) (a asked, err error) {
	a = asked{Name: form.Get("action"), Choice: choiceOf(form)}
	a.verb = verbs[a.Name]
	if a.do == nil || a.Name == "requeue" && !v.source.workers {
		return a, refuse(http.StatusBadRequest, "There is no such action for the events of this source.")
	}
	if a.Filter, err = a.Choice.filter(); err != nil {
		return a, err
	}
	a.Count, err = v.source.events.Count(ctx, a.Filter)
	return a, err
}

// confirm counts and shows what is chosen, and asks.
func (v *visit) confirm(ctx context.Context) error {
	a, err := v.ask(ctx, v.r.Form)
	if err != nil {
		return err
	}
	p, err := v.source.events.Page(ctx, a.Filter, idem.Place{}, 20)
	if err != nil {
		return err
	}
	a.Events = p.Events
	return v.render(http.StatusOK, "confirm", a.Label+"?", a)
}

// act does what was confirmed.
func (v *visit) act(ctx context.Context) error {
	a, err := v.ask(ctx, v.r.PostForm)
	reason := reasonOf(v.r.PostForm)
	switch {
	case err != nil:
		return err
	case a.Final && reason == "":
		return refuse(http.StatusBadRequest, "Say why: nothing was done. Go back, and fill in the reason.")
	case a.Count == 0:
		return refuse(http.StatusConflict, "The filter chooses no event any more: nothing was done.")
	}
	was, _ := strconv.ParseInt(v.r.PostForm.Get("count"), 10, 64) // 0 if there is none
	if a.Final && a.Count > was {
		return refuse(http.StatusConflict, fmt.Sprintf("The filter chooses %s events now, not %s: nothing was done. Look at them again.", number(a.Count), number(was)))
	}
	if was != a.Count {
		reason = strings.TrimSpace(fmt.Sprintf("%s (%d events when it was confirmed, %d when it began)", reason, was, a.Count))
	}
	op, s := v.operator(), v.source
	return v.begin(a.Name, func(ctx context.Context) error {
		defer s.counts.forget()
		return a.do(ctx, op, a.Filter, reason)
	})
}

// begin starts an action, gives it a moment, and leads to the trail, which shows
// what came of it, or how far it is.
func (v *visit) begin(name string, do func(context.Context) error) error {
	ended, err := v.running.start(do)
	if err != nil {
		return err
	}
	select {
	case err = <-ended:
	case <-time.After(inTime):
		go v.log(name, ended)
	}
	if err != nil {
		return err
	}
	v.redirect("trail?" + query(field{"source", v.source.name}))
	return nil
}

// log logs how an action failed that nobody waits for any more.
func (v *visit) log(name string, ended <-chan error) {
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		v.Logger.Error("an action of the console failed", slog.String("action", name), slog.String("user", v.user), slog.String("error", err.Error()))
	}
}
