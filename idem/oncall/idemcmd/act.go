package idemcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// planner plans an action on the events of a source.
type planner = func(*program, context.Context, *operator.Operator) (*operator.Plan, error)

// acts returns the run of a verb that changes something.
func acts(plan planner) func(*program, context.Context) error {
	return func(p *program, ctx context.Context) error { return p.carryOut(ctx, plan) }
}

// chosen plans an action on the events that the flags choose.
func chosen(plan func(*operator.Operator, context.Context, idem.Filter) (*operator.Plan, error)) planner {
	return func(p *program, ctx context.Context, o *operator.Operator) (*operator.Plan, error) {
		planned, err := plan(o, ctx, p.named(o))
		if err == nil {
			planned.Keep(p.mayBeMeant)
		}
		return planned, err
	}
}

func (p *program) planReplay(ctx context.Context, o *operator.Operator) (*operator.Plan, error) {
	if p.dryRun {
		return chosen((*operator.Operator).PlanDryReplay)(p, ctx, o)
	}
	return chosen((*operator.Operator).PlanReplay)(p, ctx, o)
}

func (p *program) planAcknowledge(ctx context.Context, o *operator.Operator) (*operator.Plan, error) {
	if p.undo {
		return chosen((*operator.Operator).PlanUnacknowledge)(p, ctx, o)
	}
	return chosen((*operator.Operator).PlanAcknowledge)(p, ctx, o)
}

func (p *program) planErase(ctx context.Context, o *operator.Operator) (*operator.Plan, error) {
	o.EraseNotDone = p.eraseOpen
	return o.PlanErase(ctx, p.filter)
}

// relaySecrets is the variable of the environment that has the relay's secrets.
const relaySecrets = "IDEM_RELAY_SECRETS"

func (p *program) planReadmit(ctx context.Context, o *operator.Operator) (*operator.Plan, error) {
	o.RequeueWithoutWorkers = p.withoutWorkers
	return o.PlanReadmit(ctx, strings.Fields(os.Getenv(relaySecrets))...)
}

func (p *program) planRescope(ctx context.Context, o *operator.Operator) (*operator.Plan, error) {
	if len(p.operators) != 1 {
		return nil, command.Usage("say whose events to move with -source: there are several sources")
	}
	return o.PlanRescope(ctx, p.filter.Scopes[0], operator.Account{Source: cmp.Or(p.toSource, o.SourceName()), Scope: *p.toAccount})
}

func (p *program) planPrune(ctx context.Context, o *operator.Operator) (*operator.Plan, error) {
	keep := &o.Inbox.Retention
	if p.retention > 0 {
		keep.Events, keep.AllowProcessingTwice = p.retention, p.allowProcessingTwice
	}
	if p.parkedRetention > 0 {
		keep.Parked = p.parkedRetention
	}
	if p.auditRetention > 0 || p.Receivers == nil { // the prebuilt command does not know the application's
		keep.Audit = p.auditRetention
	}
	return o.PlanPrune(ctx)
}

// prune forgets old events, by the application's settings or the flags, and repairs the traces of rows that were
// changed by hand.
func (p *program) prune(ctx context.Context) error {
	if len(p.operators) == 0 { // no event is stored
		return nil
	}
	return p.carryOut(ctx, (*program).planPrune)
}

// carryOut plans for each source, shows the plans, asks, and acts.
func (p *program) carryOut(ctx context.Context, plan planner) error {
	plans, total, always := make([]*operator.Plan, len(p.operators)), int64(0), false
	for n, o := range p.operators {
		o.RequeueWithoutWorkers, o.ReplayPaused = p.withoutWorkers, p.replayPaused
		planned, err := plan(p, ctx, o)
		if err != nil {
			return err
		}
		for _, key := range planned.Filter.Events {
			p.matched = append(p.matched, key, store.EventOf(key).ID)
		}
		plans[n], total, always = planned, total+planned.Count, always || planned.Always
	}
	if total == 0 && !always {
		return p.nothingOf(ctx, p.filter.IDs)
	}
	said := p.sayUnmatched(ctx)
	if said != nil && !errors.Is(said, errSaid) {
		return said
	}
	asks := !p.dryRun && !p.yes && total > 0
	if p.dryRun && !p.json || asks {
		if err := p.printPlans(ctx, plans); err != nil {
			return err
		}
	}
	if asks {
		if err := p.confirm(ctx, plans[0].Action, total); err != nil {
			return err
		}
	}
	for n, o := range p.operators {
		if plans[n].Count == 0 && !always {
			continue
		}
		err := p.do(ctx, o, plans[n])
		if errors.Is(err, errSaid) { // the next source is another matter
			said, err = errSaid, nil
		}
		if err != nil {
			return err
		}
	}
	return said
}

// printPlans prints the events and the effect of each plan: to stderr, beside the question, or to stdout if a
// dry run asks for nothing else.
func (p *program) printPlans(ctx context.Context, plans []*operator.Plan) error {
	out := p.Stderr
	if p.dryRun {
		out = p.Stdout
	}
	var effects []string
	for n, o := range p.operators {
		plan := plans[n]
		if plan.Count == 0 && !plan.Always {
			continue
		}
		fmt.Fprintln(out, command.Text("%s of %s.", p.events(plan.Count), terminal.Clean(o.SourceName())))
		first, err := plan.First(ctx)
		if err != nil {
			return err
		}
		t := p.table("RECEIVED @", "ACCOUNT", "STATE", "TYPE", "ENTITY", "ID", "ERROR")
		t.Indent = 2
		for _, s := range first {
			t.Add(p.at(s.ReceivedAt), terminal.Clean(s.Scope), stateOf(s), terminal.Clean(s.Type), terminal.Clean(s.Key), terminal.Clean(s.ID), terminal.Clean(s.LastError))
		}
		if first != nil {
			if err := t.Print(out, longest); err != nil {
				return err
			}
		}
		if more := plan.Count - int64(len(first)); more > 0 && first != nil {
			fmt.Fprintln(out, "  "+command.Text("and %s more", more))
		}
		effects = append(effects, plan.Effect...)
		if plan.Action == "discard" {
			behind, err := plan.Behind(ctx)
			if err != nil {
				return err
			}
			effects = append(effects, command.Text("Behind them wait %s, which would go on.", p.events(behind)))
		}
	}
	if p.eraseOpen {
		effects = append(effects, "Those that are not done would not be processed.")
	}
	for n, line := range effects {
		if slices.Contains(effects[:n], line) { // of another source
			continue
		}
		if _, err := fmt.Fprintln(out, terminal.Clean(line)); err != nil {
			return err
		}
	}
	return nil
}

// confirm asks a person.
func (p *program) confirm(ctx context.Context, action string, total int64) error {
	these := command.Text("these %s", p.events(total))
	if total == 1 {
		these = "this event"
	}
	return p.command.Confirm(ctx, strings.ToUpper(action[:1])+action[1:]+" "+these+"?")
}

// do carries a plan out, and prints the result. A dry run does only a dry replay.
func (p *program) do(ctx context.Context, o *operator.Operator, plan *operator.Plan) (err error) {
	d := done{Source: o.SourceName(), Action: strings.TrimPrefix(plan.Action, "dry "), Matched: plan.Count, DryRun: p.dryRun}
	isReplay := d.Action == "replay"
	if p.dryRun && !isReplay {
		if p.json {
			err = p.printLine(d)
		}
		if err == nil && plan.NotDone > 0 && !p.eraseOpen {
			p.tell("%s would be left alone: not done; -discard gives them up and erases them", p.events(plan.NotDone))
			err = errSaid
		}
		return err
	}
	bar := p.newProgress(command.Text("replaying %s", d.Source))
	if p.dryRun {
		bar.what = command.Text("trying %s", d.Source)
	}
	o.Progress, o.Failed = bar.show, bar.failure
	r, err := p.await(ctx, plan)
	bar.end()
	if err != nil {
		return p.brokenOff(ctx, plan, r, err)
	}
	line := command.Text("%s of %s: %s", p.events(r.Acted), terminal.Clean(d.Source), plan.Did)
	if isReplay {
		line += ": " + p.sum(r.Replayed)
		d.Done, d.Failed, d.Unhandled = &r.Replayed.Done, &r.Replayed.Failed, &r.Replayed.Unhandled
		for _, o := range r.Replayed.Overtaken {
			d.Overtaken = append(d.Overtaken, overtaken{o.Event.Scope, o.Event.ID, o.Event.Type, o.By.ID, o.By.Type})
		}
	} else {
		d.Changed = &r.Acted
	}
	if p.json {
		err = p.printLine(d)
	} else {
		_, err = fmt.Fprintln(p.Stdout, line)
	}
	if err != nil {
		p.tell("%s; this could not be printed: %s", line, err)
		r.Short = true
	}
	err = p.sayRest(ctx, terminal.Clean(d.Source), plan, r)
	if err == nil && r.Short {
		err = errSaid
	}
	return err
}

// await carries a plan out. A commit waits for a synchronous replica without an end: await gives up then, and says so.
func (p *program) await(ctx context.Context, plan *operator.Plan) (operator.Result, error) {
	type end struct {
		result operator.Result
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		r, err := plan.Do(ctx, p.reason)
		ended <- end{r, err}
	}()
	for {
		select {
		case e := <-ended:
			return e.result, e.err
		case <-time.After(p.patience):
		}
		if waits := p.awaited(ctx); waits != nil {
			return operator.Result{}, fmt.Errorf("%w: it is not known whether this is done: see idem audit once the replica is back", waits)
		}
	}
}

// awaited returns an error that says for what commits wait; nil if they do not, or if that cannot be asked.
func (p *program) awaited(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	a, err := store.FindAwaited(ctx, p.pool)
	if err != nil || a.Names == "" {
		return nil
	}
	return fmt.Errorf("%s: start the replica, see idem doctor", a)
}

// done is the result of an action, as JSON.
type done struct {
	Source  string `json:"source"`
	Action  string `json:"action"`
	Matched int64  `json:"matched"`
	DryRun  bool   `json:"dry_run"`

	Changed   *int64 `json:"changed,omitempty"` // requeued, discarded, acknowledged, erased, forgotten
	Done      *int   `json:"done,omitempty"`    // of a replay
	Failed    *int   `json:"failed,omitempty"`
	Unhandled *int   `json:"unhandled,omitempty"`

	Overtaken []overtaken `json:"overtaken,omitempty"`
}

// overtaken is an event that was replayed behind a later one of its entity.
type overtaken struct {
	Scope  string `json:"scope"`
	ID     string `json:"id"`
	Type   string `json:"type"`
	By     string `json:"by"`
	ByType string `json:"by_type"`
}

// brokenOff adds to the error of an action how far it came, and how to go on.
func (p *program) brokenOff(ctx context.Context, plan *operator.Plan, r operator.Result, err error) error {
	if plan.Action == "replay" {
		p.tell("%s of %s were replayed (%s), the rest is as it was: run it again to go on", r.Acted, p.events(plan.Count), p.sum(r.Replayed))
	}
	switch isStopped := ctx.Err() != nil || errors.Is(err, operator.ErrStopped); {
	case isStopped && plan.Atomic:
		return fmt.Errorf("%w: nothing was changed, unless idem audit has its result. Give the command again: it shows the events that are left, and asks anew", err)
	case ctx.Err() != nil:
		return fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	return err
}

// sayRest prints which of the events that were shown were left alone, how many came since, and what went wrong
// in a replay.
func (p *program) sayRest(ctx context.Context, source string, plan *operator.Plan, r operator.Result) error {
	for _, left := range r.Left {
		p.tell("%s of the %s of %s left alone: %s", left.Events, p.events(plan.Count), source, terminal.Clean(left.Why))
	}
	came, err := plan.Came(ctx)
	if err != nil {
		return err
	}
	if came > 0 {
		p.tell("%s of %s came since, left alone: run it again to see them", p.events(came), source)
	}
	sum := r.Replayed
	if sum.Unhandled > 0 {
		p.tell("this program has no handler for %s, which stay as they are", p.events(int64(sum.Unhandled)))
	}
	p.sayOvertaken(sum)
	if sum.Failed > 0 {
		p.tell("%s failed, and stay: idem list shows why", p.events(int64(sum.Failed)))
	}
	return nil
}

// shownOvertaken limits the overtaken events that are named.
const shownOvertaken = 20

// sayOvertaken names the events that ran, or would run, behind later ones of their entities.
func (p *program) sayOvertaken(sum idem.Replayed) {
	if len(sum.Overtaken) == 0 {
		return
	}
	p.tell("%s behind later ones of the same entity, which were done before: see that what the handler did is right", p.events(int64(len(sum.Overtaken))))
	for n, o := range sum.Overtaken {
		if n == shownOvertaken {
			p.say("  %s\n", command.Text("and %s more", len(sum.Overtaken)-n))
			return
		}
		p.say("  %s\n", terminal.Clean(command.Text("%s (%s) behind %s (%s)", o.Event.ID, o.Event.Type, o.By.ID, o.By.Type)))
	}
}

func (p *program) sum(r idem.Replayed) string {
	return command.Text("%s done, %s failed, %s without a handler", r.Done, r.Failed, r.Unhandled)
}
