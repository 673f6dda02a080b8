package webhook

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/health/check"
)

// Watches is a [Watch] of the webhook of each account of a platform. It looks at one account after the other, so that
// Asaas never gets two calls of it at once, and a key that is broken, or an account that is closed, is a finding of
// that account. Make it with [NewWatches], give it to idem.Serve, which runs it, and to health.New, which asks it.
//
// Several goroutines may use it at once. The exported field is a setting: change it before Run.
type Watches struct {
	// Every is the time from the begin of one round to that of the next. A round that takes longer is followed by the
	// next one at once. Default: 5 minutes.
	Every time.Duration

	accounts   iter.Seq2[string, *asaas.Client]
	want       func(account string) Settings
	dispatcher *asaas.Dispatcher

	mu      sync.Mutex
	names   []string // in the order of the list
	watches map[string]*Watch
}

// NewWatches returns a watch of the webhooks of all accounts of a list, as [asaas.Clients] makes it. The list is read
// for each round: an account that has joined is watched, one that has left is not. want returns the settings of an
// account's webhook, whose Token is not needed. The dispatcher is that of all.
func NewWatches(accounts iter.Seq2[string, *asaas.Client], want func(account string) Settings, d *asaas.Dispatcher) *Watches {
	return &Watches{Every: 5 * time.Minute, accounts: accounts, want: want, dispatcher: d, watches: make(map[string]*Watch)}
}

// Run looks at all webhooks, and looks again after Every, until ctx ends. A look that fails does not end it.
func (w *Watches) Run(ctx context.Context) error {
	if w.Every <= 0 {
		return errors.New("webhook: Watches: Every is not positive: set how often to look")
	}
	for {
		next := time.After(w.Every)
		w.look(ctx)
		select {
		case <-next:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// look looks at each account's webhook.
func (w *Watches) look(ctx context.Context) {
	var names []string
	for account, client := range w.accounts {
		if ctx.Err() != nil {
			return
		}
		if slices.Contains(names, account) {
			continue
		}
		names = append(names, account)
		_, _ = w.of(account, client).look(ctx) // Examine has it
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = names
	for account := range w.watches {
		if !slices.Contains(names, account) {
			delete(w.watches, account)
		}
	}
}

// of returns the watch of an account, with its key as it is now.
func (w *Watches) of(account string, client *asaas.Client) *Watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := NewWatch(client, w.want(account), w.dispatcher)
	one.account = account
	if before := w.watches[account]; before != nil {
		one.lost, one.command, one.err, one.failing = before.lost, before.command, before.err, before.failing
		one.penalized, one.looked, one.more, one.rose = before.penalized, before.looked, before.more, before.rose
	}
	w.watches[account] = one
	return one
}

// SourceName returns "asaas", the name of the events' source.
func (w *Watches) SourceName() string { return source }

// Failed returns the time since which Asaas has counted failed deliveries of an account, the latest of all: see Failed
// of [Watch].
func (w *Watches) Failed() (since time.Time) {
	for _, one := range w.each() {
		if at := one.Failed(); at.After(since) {
			since = at
		}
	}
	return since
}

// Problems asks Asaas now, and returns a line for each thing that keeps events away, with its account and the command
// that repairs it. Package doctor calls it.
func (w *Watches) Problems(ctx context.Context) (problems []string, command string, err error) {
	w.look(ctx)
	for account, one := range w.each() {
		one.mu.Lock()
		for _, d := range one.lost {
			problem := named(account) + ": " + d.Text
			if one.command != "" {
				problem += ": " + one.command
			}
			problems = append(problems, problem)
		}
		if one.err != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", named(account), one.err))
		}
		one.mu.Unlock()
	}
	return problems, "", err
}

// shownAccounts is the number of accounts that Examine names.
const shownAccounts = 5

// Examine says what keeps events away, by account, as of the last look at each that succeeded: the check "webhook" of
// package health. It makes no request, and names five accounts at most. See Examine of [Watch].
func (w *Watches) Examine(ctx context.Context, limits check.Limits) []check.Result {
	all := check.Result{Source: source, Name: "webhook", Healthy: true}
	var says []string
	accounts, unsound := 0, int64(0)
	for account, one := range w.each() {
		accounts++
		for _, r := range one.Examine(ctx, limits) {
			if r.Healthy {
				continue
			}
			unsound++
			says = append(says, named(account)+": "+r.String())
		}
	}
	all.Count = &unsound
	if unsound == 0 {
		all.Says = fmt.Sprintf("as far as Asaas says, the webhooks of %d accounts are enabled, and subscribed to all that the application handles", accounts)
		return []check.Result{all}
	}
	all.Healthy = false
	all.Says = fmt.Sprintf("of %d accounts %d: %s", accounts, unsound, strings.Join(says[:min(len(says), shownAccounts)], "; "))
	if more := len(says) - shownAccounts; more > 0 {
		all.Says += fmt.Sprintf("; and %d more", more)
	}
	all.Says += ": ASAAS_ACCOUNTS names the list of accounts for asaas-queue"
	return []check.Result{all}
}

// each yields the watches in the order of the list.
func (w *Watches) each() iter.Seq2[string, *Watch] {
	w.mu.Lock()
	defer w.mu.Unlock()
	type pair struct {
		account string
		watch   *Watch
	}
	var all []pair
	for _, account := range w.names {
		all = append(all, pair{account, w.watches[account]})
	}
	return func(yield func(string, *Watch) bool) {
		for _, p := range all {
			if !yield(p.account, p.watch) {
				return
			}
		}
	}
}

// named returns an account's name for people.
func named(account string) string {
	if account == "" {
		return "the account without a scope"
	}
	return account
}
