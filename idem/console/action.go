package console

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/lang"
)

// verbs are the actions on events.
var verbs = map[string]verb{
	"replay": {Label: "Replay", Means: "Handlers process these events now, one after the other, each once.", do: func(ctx context.Context, op *operator.Operator, a asked, reason string) error {
		_, err := op.Replay(ctx, a.Filter, reason)
		return err
	}},
	"dry-run": {Label: "Dry run", Means: "Handlers process these events, each in a transaction that is rolled back. What handlers do outside of it does happen.", do: func(ctx context.Context, op *operator.Operator, a asked, reason string) error {
		_, err := op.DryReplay(ctx, a.Filter, reason)
		return err
	}},
	"requeue": {Label: "Requeue", Means: "Workers process these events again, as if they had just arrived.", do: func(ctx context.Context, op *operator.Operator, a asked, reason string) error {
		_, err := op.Requeue(ctx, a.Filter, reason)
		return err
	}},
	"discard": {Label: "Discard", Means: "These events are given up for good: they will not be processed, and their bodies go unless the application keeps bodies.", Final: true, do: func(ctx context.Context, op *operator.Operator, a asked, reason string) error {
		_, err := op.Discard(ctx, a.Filter, reason)
		return err
	}},
	"erase": {Label: "Erase", Means: "What is stored of these events is deleted for good, for a person who asks for it: bodies, errors, the history of attempts, and traces.", Final: true, Erases: true, do: func(ctx context.Context, op *operator.Operator, a asked, reason string) error {
		op.EraseNotDone = a.NotDoneToo
		_, err := op.Erase(ctx, a.Found, reason)
		return err
	}},
}

type verb struct {
	Label, Means lang.Text
	Final        bool // cannot be undone, and needs a reason
	Erases       bool // is about events in all states
	do           func(ctx context.Context, op *operator.Operator, a asked, reason string) error
}

// asked is an action that a form asks for.
type asked struct {
	verb
	Name       string
	Choice     choice
	Filter     idem.Filter        // names the events
	Count      int                // of them
	Shown      string             // their marks
	Events     []idem.StoredEvent // the newest of them
	Sure       bool               // whether the source's name is to be typed: it is final, and about all events, or erases
	Found      []idem.StoredEvent // that are to be erased
	NotDone    int                // of those
	NotDoneToo bool               // whether those are to be given up, and erased
}

// ask reads the request of a form, and finds the events.
func (v *visit) ask(ctx context.Context, form url.Values) (a asked, err error) {
	a = asked{Name: form.Get("action"), Choice: choiceOf(form)}
	if len(a.Choice.Events) > maxShown {
		return a, refuse(http.StatusBadRequest, "That are more events than a page lists.")
	}
	a.verb = verbs[a.Name]
	if a.do == nil || a.Name == "requeue" && !v.source.workers {
		return a, refuse(http.StatusBadRequest, "There is no such action for the events of this source.")
	}
	a.Sure = a.Final && (a.Choice.Narrowed() == 0 || a.Erases)
	if a.Erases {
		err = v.askToErase(ctx, &a, form)
	} else {
		a.Filter, err = v.choose(ctx, a.Choice)
	}
	a.Count = len(a.Filter.Events)
	return a, err
}

// choose finds the events of a choice, of those that are not done.
func (v *visit) choose(ctx context.Context, c choice) (f idem.Filter, err error) {
	f, err = c.filter()
	if err != nil {
		return f, err
	}
	return v.source.events.Choose(ctx, f)
}

// askToErase finds the events that are to be erased: named ones, in any state.
func (v *visit) askToErase(ctx context.Context, a *asked, form url.Values) (err error) {
	keys := a.Choice.Events
	switch {
	case a.Choice.One != "":
		keys = []string{rowKey(v.source.name, a.Choice.Account, a.Choice.ID)}
	case a.Choice.Chosen == "":
		return refuse(http.StatusBadRequest, "There is no such action for the events of this source.")
	}
	found, err := v.source.events.ByKey(ctx, keys)
	if err != nil {
		return err
	}
	a.Found = slices.DeleteFunc(found, func(e idem.StoredEvent) bool { return e.Source != v.source.name })
	a.NotDoneToo = form.Get("open") != ""
	a.Filter.Events = []string{}
	for _, e := range a.Found {
		a.Filter.Events = append(a.Filter.Events, rowKey(e.Source, e.Scope, e.ID))
		if isOpen(e) {
			a.NotDone++
		}
	}
	return nil
}

// confirm shows the chosen events, and asks.
func (v *visit) confirm(ctx context.Context) error {
	a, err := v.ask(ctx, v.r.Form)
	if err != nil {
		return err
	}
	if a.Count > maxChosen {
		return refuse(http.StatusBadRequest, "The filter chooses %s events, and an action of this page is about %s at most: choose a shorter time, or use the command idem.", a.Count, maxChosen)
	}
	a.Shown = marksOf(a.Filter.Events)
	if a.Events = a.Found; !a.Erases {
		p, err := v.source.events.Page(ctx, a.Filter, operator.Place{}, 20)
		if err != nil {
			return err
		}
		a.Events = p.Events
	}
	a.Events = v.errorsHidden(a.Events)
	return v.render(http.StatusOK, "confirm", v.say(a.Label)+"?", a)
}

// act does the confirmed action, to the events that were shown.
func (v *visit) act(ctx context.Context) error {
	a, err := v.ask(ctx, v.r.PostForm)
	reason := reasonOf(v.r.PostForm)
	switch sure := strings.TrimSpace(v.r.PostForm.Get("sure")) == v.source.name; {
	case err != nil:
		return err
	case a.Final && reason == "":
		return refuse(http.StatusBadRequest, "Say why: nothing was done. Go back, and fill in the reason.")
	case a.Erases && !sure:
		return refuse(http.StatusBadRequest, "What is erased does not come back. To erase these events, type the name of the source, %s: nothing was done. Go back, and fill it in.", v.source.name)
	case a.Sure && !sure:
		return refuse(http.StatusBadRequest, "These are all events that are not done. To discard them, type the name of the source, %s: nothing was done. Go back, and fill it in.", v.source.name)
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
	a.Found = slices.DeleteFunc(a.Found, func(e idem.StoredEvent) bool { return !slices.Contains(again, rowKey(e.Source, e.Scope, e.ID)) })
	op, s := v.operator(), v.source
	failed := s.tried.begin(v.user)
	if a.Name == "dry-run" { // others store the error with the event
		op.Failed = failed
	}
	return v.begin(a.Name, func(ctx context.Context) error {
		defer s.counts.forget()
		return a.do(ctx, op, a, reason)
	})
}

// stop asks an action to end.
func (v *visit) stop(ctx context.Context) error {
	n, err := id(v.r.PostForm.Get("id"))
	if err != nil {
		return err
	}
	if err := told(v.operator().Stop(ctx, n, reasonOf(v.r.PostForm))); err != nil {
		return err
	}
	v.redirect("action?" + query(field{"source", v.source.name}, field{"id", strconv.FormatInt(n, 10)}))
	return nil
}

// told returns the text that people see of an error of an action.
func told(err error) error {
	switch {
	case errors.Is(err, operator.ErrNoAction):
		return refuse(http.StatusNotFound, "There is no such action on events of this source.")
	case errors.Is(err, operator.ErrNotRunning):
		return refuse(http.StatusConflict, "This action does not run any more: nothing was done.")
	case errors.Is(err, operator.ErrStopped):
		return refuse(http.StatusConflict, "Somebody has stopped this action already: it ends after the event that it is at.")
	case errors.Is(err, operator.ErrNoWorkers):
		return refuse(http.StatusConflict, "No workers of this source are alive, and requeued events would wait for them: nothing was done. Replay the events, or start the program that runs the workers.")
	}
	return err
}

// begin starts an action, gives it a moment, and leads to the trail, which shows
// its result, or its progress.
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
	if err != nil && !errors.Is(err, operator.ErrStopped) {
		return told(err)
	}
	v.redirect("trail?" + query(field{"source", v.source.name}))
	return nil
}

// log logs the failure of an action that no request waits for any more.
func (v *visit) log(name string, ended <-chan error) {
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, operator.ErrStopped) {
		v.Logger.Error("an action of the console failed", slog.String("action", name), slog.String("user", v.user), slog.String("error", err.Error()))
	}
}

// maxChosen is the number of events that one action of the page may be about. The form of so many has half
// a megabyte; proxies often take one.
const maxChosen = 50_000

// mark stands for a shown event in a form.
type mark [8]byte

func markOf(rowKey string) mark {
	sum := sha256.Sum256([]byte(rowKey))
	return mark(sum[:8])
}

// marksOf are the marks of events as a form's field has them.
func marksOf(rowKeys []string) string {
	var all []byte
	for _, key := range rowKeys {
		m := markOf(key)
		all = append(all, m[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(all)
}

// wereShown returns the events with their marks in a form, and how many events it shows.
func wereShown(rowKeys []string, field string) (again []string, shown int) {
	all, err := base64.RawURLEncoding.DecodeString(field)
	if err != nil {
		return nil, 0
	}
	marks := map[mark]bool{}
	for ; len(all) >= len(mark{}); all = all[len(mark{}):] {
		marks[mark(all[:len(mark{})])] = true
	}
	for _, key := range rowKeys {
		if marks[markOf(key)] {
			again = append(again, key)
		}
	}
	return again, len(marks)
}

// rowKey returns the row key of an event.
func rowKey(source, account, id string) string {
	return store.Event{Source: source, Scope: account, ID: id}.RowKey()
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
