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
	"github.com/paghooks/paghooks/idem/internal/redact"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/lang"
)

// verbs are the actions on events, in the order of their buttons.
var verbs = []verb{
	{Name: "replay", Label: "Replay", OnLists: true, plan: (*operator.Operator).PlanReplay},
	{Name: "dry-run", Label: "Dry run", OnLists: true, plan: (*operator.Operator).PlanDryReplay},
	{Name: "requeue", Label: "Requeue", OnLists: true, plan: (*operator.Operator).PlanRequeue},
	{Name: "acknowledge", Label: "Acknowledge", OnLists: true, plan: (*operator.Operator).PlanAcknowledge},
	{Name: "unacknowledge", Label: "Take the acknowledgment back", plan: (*operator.Operator).PlanUnacknowledge},
	{Name: "discard", Label: "Discard", OnLists: true, IsFinal: true, plan: (*operator.Operator).PlanDiscard},
	{Name: "erase", Label: "Erase", IsFinal: true, IsOfNamed: true, plan: (*operator.Operator).PlanErase},
}

type verb struct {
	Name      string // in forms
	Label     lang.Text
	OnLists   bool // it is offered on every list
	IsFinal   bool // the button warns
	IsOfNamed bool // it is about events that are chosen by name, in any state
	plan      func(*operator.Operator, context.Context, idem.Filter) (*operator.Plan, error)
}

// offered returns the actions that a page offers.
func offered(on func(verb) bool) []verb {
	return slices.DeleteFunc(slices.Clone(verbs), func(a verb) bool { return !on(a) })
}

// asked is an action that a form asks for.
type asked struct {
	verb
	*operator.Plan
	Choice choice
	Behind int64              // later events, which go on once these are discarded
	Shown  string             // the marks of the events
	First  []idem.StoredEvent // of them
	Sure   bool               // whether the source's name is to be typed: it is final, and about all events or named ones
}

// ask reads the request of a form, and plans the action on the events of its choice for an operator.
func (v *visit) ask(ctx context.Context, op *operator.Operator, form url.Values) (a asked, err error) {
	a.Choice = choiceOf(form)
	if len(a.Choice.Events) > maxShown {
		return a, refuse(http.StatusBadRequest, "That are more events than a page lists.")
	}
	n := slices.IndexFunc(verbs, func(known verb) bool { return known.Name == form.Get("action") })
	if n >= 0 {
		a.verb = verbs[n]
	}
	if n < 0 || a.IsOfNamed && a.Choice.One == "" && a.Choice.Chosen == "" {
		return a, refuse(http.StatusBadRequest, "There is no such action for the events of this source.")
	}
	var f idem.Filter
	switch {
	case a.IsOfNamed && a.Choice.One != "":
		f.Events = []string{rowKey(v.source.name, a.Choice.Account, a.Choice.ID)}
	case a.IsOfNamed:
		f.Events = a.Choice.Events
	default:
		if f, err = a.Choice.filter(); err != nil {
			return a, err
		}
	}
	op.EraseNotDone = form.Get("open") != ""
	a.Plan, err = a.plan(op, ctx, f)
	a.Sure = a.IsFinal && (len(a.Choice.Narrowing()) == 0 || a.IsOfNamed)
	return a, err
}

// Says returns the effect of the action, a paragraph each.
func (a asked) Says() (all []lang.Text) {
	for _, text := range a.Effect {
		all = append(all, lang.Text(text))
	}
	return all
}

// confirm shows the chosen events, and asks.
func (v *visit) confirm(ctx context.Context) error {
	a, err := v.ask(ctx, v.operator(), v.r.Form)
	if err != nil {
		return err
	}
	if a.Count > maxChosen {
		return refuse(http.StatusBadRequest, "The filter chooses %s events, and an action of this page is about %s at most: choose a shorter time, or use the command idem.", a.Count, maxChosen)
	}
	a.Shown = marksOf(a.Filter.Events)
	if a.First, err = a.Plan.First(ctx); err != nil {
		return err
	}
	v.hideErrors(a.First)
	if a.Name == "discard" {
		if a.Behind, err = a.Plan.Behind(ctx); err != nil {
			return err
		}
	}
	return v.render(http.StatusOK, "confirm", v.say(a.Label)+"?", a)
}

// act does the confirmed action, to the events that were shown.
func (v *visit) act(ctx context.Context) error {
	op, s := v.operator(), v.source
	a, err := v.ask(ctx, op, v.r.PostForm)
	reason := reasonOf(v.r.PostForm)
	switch sure := strings.TrimSpace(v.r.PostForm.Get("sure")) == s.name; {
	case err != nil:
		return err
	case a.IsFinal && reason == "":
		return refuse(http.StatusBadRequest, "Say why: nothing was done. Go back, and fill in the reason.")
	case a.IsOfNamed && !sure:
		return refuse(http.StatusBadRequest, "What is erased does not come back. To erase these events, type the name of the source, %s: nothing was done. Go back, and fill it in.", s.name)
	case a.Sure && !sure:
		return refuse(http.StatusBadRequest, "These are all events that are not done. To discard them, type the name of the source, %s: nothing was done. Go back, and fill it in.", s.name)
	}
	marks, now := marksIn(v.r.PostForm.Get("shown")), a.Count
	a.Keep(func(key string) bool { return marks[markOf(key)] })
	if a.Count == 0 {
		return refuse(http.StatusConflict, "The filter chooses none of the events any more that you were shown: nothing was done. Look at them again.")
	}
	left, came := int64(len(marks))-a.Count, now-a.Count
	if left > 0 || came > 0 {
		reason = strings.TrimPrefix(fmt.Sprintf("%s; of %d events that were shown, %d had left the list, and %d came since: those are left alone", reason, len(marks), left, came), "; ")
	}
	if a.Name == "dry-run" { // others store the error with the event
		op.Failed = func(e idem.Event, err error) {
			v.Logger.Warn("a dry run of the console failed", slog.String("type", e.Type), slog.String("id", e.ID), slog.String("error", redact.Error(err, op.Inbox.RedactError).Error()))
		}
	}
	return v.begin(a.Name, func(ctx context.Context) error {
		defer s.counts.Forget()
		_, err := a.Do(ctx, reason)
		return err
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
	case errors.Is(err, operator.ErrNotPaused):
		return refuse(http.StatusConflict, "There is no such pause any more: nothing was done.")
	case errors.Is(err, operator.ErrNoWorkers):
		return refuse(http.StatusConflict, "No workers of this source are alive, and requeued events would wait for them: nothing was done. Replay the events, or start the program that runs the workers.")
	}
	return err
}

// begin starts an action and waits a moment for its end. Then it leads to the trail, which shows the result or
// the progress.
func (v *visit) begin(name string, do func(context.Context) error) error {
	ended, err := v.running.start(do)
	if err != nil {
		return err
	}
	select {
	case err = <-ended:
	case <-time.After(v.waits.result):
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

// maxChosen is the largest number of events of one action. A form with so many has half a megabyte; proxies
// often accept one.
const maxChosen = 50_000

// shownMark stands for a shown event in a form.
type shownMark [8]byte

func markOf(rowKey string) shownMark {
	sum := sha256.Sum256([]byte(rowKey))
	return shownMark(sum[:8])
}

// marksOf returns the marks of events as the field of a form.
func marksOf(rowKeys []string) string {
	var all []byte
	for _, key := range rowKeys {
		m := markOf(key)
		all = append(all, m[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(all)
}

// marksIn returns the marks in the field of a form; none if the field is broken.
func marksIn(field string) map[shownMark]bool {
	all, err := base64.RawURLEncoding.DecodeString(field)
	if err != nil {
		return nil
	}
	marks := map[shownMark]bool{}
	for ; len(all) >= len(shownMark{}); all = all[len(shownMark{}):] {
		marks[shownMark(all[:len(shownMark{})])] = true
	}
	return marks
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
