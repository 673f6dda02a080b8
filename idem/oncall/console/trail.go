package console

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/lang"
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
	if slices.ContainsFunc(actions, func(a operator.Action) bool { return a.Alive }) {
		v.live = liveRunning
	}
	return v.render(http.StatusOK, "trail", v.say("Audit trail"), struct {
		Actions []operator.Action
		Next    int64
	}{actions, next})
}

// recorded says a text of the audit trail, which is stored in English: each of its parts, with the numbers in
// it, or with what follows its first words.
func recorded(l lang.Lang, text string) string {
	parts := strings.Split(text, "; ")
	if l == lang.English {
		parts = nil
	}
	for n, part := range parts {
		if said, ok := inTrail[numbers.ReplaceAllString(part, "%s")]; ok {
			for _, number := range numbers.FindAllString(part, -1) {
				said = strings.Replace(said, "%s", number, 1)
			}
			parts[n] = said
			continue
		}
		for format, said := range inTrail {
			first, ok := strings.CutSuffix(format, "%s")
			rest, follows := strings.CutPrefix(part, first)
			if !ok || !follows {
				continue
			}
			if words := strings.Fields(rest); first == "states " {
				for i, word := range words {
					words[i] = portuguese.Say(l, lang.Text(word))
				}
				rest = strings.Join(words, ", ")
			}
			parts[n] = strings.Replace(said, "%s", rest, 1)
		}
	}
	return cmp.Or(strings.Join(parts, "; "), text)
}

var numbers = regexp.MustCompile(`\b[0-9]+\b`)

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
	outcomes, err := v.source.events.Outcomes(ctx, n, maxShown)
	if err != nil {
		return err
	}
	if a.EndedAt.IsZero() {
		v.live = liveRunning
	}
	return v.render(http.StatusOK, "action", v.say("Action"), struct {
		operator.Action
		Outcomes  []operator.Outcome
		BrokenOff bool // it was stopped, or its process died
	}{a, outcomes, !a.Alive && (a.EndedAt.IsZero() || a.StoppedBy != "")})
}

// running holds the actions in the background.
type running struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu  sync.Mutex // also held when ctx is canceled: nothing starts later
	now int
	all sync.WaitGroup
}

// maxRunning is the number of actions that may go on at once: each holds a connection.
const maxRunning = 4

func newRunning() *running {
	ctx, cancel := context.WithCancel(context.Background())
	return &running{ctx: ctx, cancel: cancel}
}

// start runs do until it ends or the page is closed, and returns a channel that gets its
// error.
func (r *running) start(do func(context.Context) error) (<-chan error, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ctx.Err() != nil:
		return nil, refuse(http.StatusServiceUnavailable, "The application is shutting down: nothing was begun. Try it again in a minute.")
	case r.now == maxRunning:
		return nil, refuse(http.StatusServiceUnavailable, "%s actions are running, and no more may run at the same time: nothing was begun. Try it again when one has ended.", maxRunning)
	}
	r.now++
	ended := make(chan error, 1)
	r.all.Go(func() {
		err := do(r.ctx)
		r.mu.Lock()
		r.now--
		r.mu.Unlock()
		ended <- err
	})
	return ended, nil
}

// look reads something in the background, unless the page is closed.
func (r *running) look(read func(context.Context)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return false
	}
	r.all.Go(func() { read(r.ctx) })
	return true
}

func (r *running) close() {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.all.Wait()
}
