package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// verbs are what may be done to events.
var verbs = map[string]verb{
	"replay": {"Replay", "Handlers process these events now, one after the other, each once.", false, func(ctx context.Context, op *operator.Operator, f idem.Filter, reason string) error {
		_, err := op.Replay(ctx, f, reason)
		return err
	}},
	"dry-run": {"Dry run", "Handlers process these events, each in a transaction that is rolled back. What handlers do outside of it does happen.", false, func(ctx context.Context, op *operator.Operator, f idem.Filter, reason string) error {
		_, err := op.DryReplay(ctx, f, reason)
		return err
	}},
	"requeue": {"Requeue", "Workers process these events again, as if they had just arrived.", false, func(ctx context.Context, op *operator.Operator, f idem.Filter, reason string) error {
		_, err := op.Requeue(ctx, f, reason)
		return err
	}},
	"discard": {"Discard", "These events are given up for good: they will not be processed, and their bodies go unless the application keeps bodies.", true, func(ctx context.Context, op *operator.Operator, f idem.Filter, reason string) error {
		_, err := op.Discard(ctx, f, reason)
		return err
	}},
}

type verb struct {
	Label, Means string
	Final        bool // cannot be undone, and needs a reason
	do           func(ctx context.Context, op *operator.Operator, f idem.Filter, reason string) error
}

// asked is an action that a form asks for.
type asked struct {
	verb
	Name   string
	Choice choice
	Filter idem.Filter        // names the events
	Count  int                // of them
	Shown  string             // their marks
	Events []idem.StoredEvent // the newest of them
	Sure   bool               // whether the source's name is to be typed: it is final, and about all events
}

// ask reads what a form asks for, and finds the events.
func (v *visit) ask(ctx context.Context, form url.Values) (a asked, err error) {
	a = asked{Name: form.Get("action"), Choice: choiceOf(form)}
	a.verb = verbs[a.Name]
	if a.do == nil || a.Name == "requeue" && !v.source.workers {
		return a, refuse(http.StatusBadRequest, "There is no such action for the events of this source.")
	}
	a.Sure = a.Final && a.Choice.all()
	f, err := a.Choice.filter()
	if err != nil {
		return a, err
	}
	a.Filter, err = v.source.events.Choose(ctx, f)
	a.Count = len(a.Filter.Events)
	return a, err
}

// confirm shows what is chosen, and asks.
func (v *visit) confirm(ctx context.Context) error {
	a, err := v.ask(ctx, v.r.Form)
	if err != nil {
		return err
	}
	if a.Count > maxChosen {
		return refuse(http.StatusBadRequest, fmt.Sprintf("The filter chooses %s events, and an action of this page is about %s at most: choose a shorter time, or use the command idem.", number(a.Count), number(maxChosen)))
	}
	a.Shown = marksOf(a.Filter.Events)
	p, err := v.source.events.Page(ctx, a.Filter, idem.Place{}, 20)
	if err != nil {
		return err
	}
	a.Events = p.Events
	return v.render(http.StatusOK, "confirm", a.Label+"?", a)
}

// act does what was confirmed, to the events that were shown.
func (v *visit) act(ctx context.Context) error {
	a, err := v.ask(ctx, v.r.PostForm)
	reason := reasonOf(v.r.PostForm)
	switch {
	case err != nil:
		return err
	case a.Final && reason == "":
		return refuse(http.StatusBadRequest, "Say why: nothing was done. Go back, and fill in the reason.")
	case a.Sure && strings.TrimSpace(v.r.PostForm.Get("sure")) != v.source.name:
		return refuse(http.StatusBadRequest, "These are all events that are not done. To discard them, type the name of the source, "+v.source.name+": nothing was done. Go back, and fill it in.")
	}
	again, shown := wereShown(a.Filter.Events, v.r.PostForm.Get("shown"))
	if len(again) == 0 {
		return refuse(http.StatusConflict, "The filter chooses none of the events any more that you were shown: nothing was done. Look at them again.")
	}
	left, came := shown-len(again), a.Count-len(again)
	if left > 0 || came > 0 {
		reason = strings.TrimSpace(fmt.Sprintf("%s (of %d events that were shown, %d had left the list, and %d came since: those are left alone)", reason, shown, left, came))
	}
	a.Filter.Events = again
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
