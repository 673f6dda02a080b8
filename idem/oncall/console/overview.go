package console

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/latest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/internal/lang"
)

// The largest age of the overview's numbers.
const (
	freshCounts = 5 * time.Second
	freshQueues = 30 * time.Second // providers limit how often they are asked
)

// reading returns a value that is read while somebody looks, for at most a tenth of the time, or half of it while
// that fails.
func reading[T any](h *Handler, fresh time.Duration, read func(context.Context) (T, error)) *latest.Value[T] {
	return &latest.Value[T]{Read: read, Limit: time.Minute, Fresh: fresh, Pause: 10, Go: h.running.look}
}

// refresh starts readings of the source's counts and queues.
func (s *source) refresh(h *Handler) {
	s.counts.Refresh()
	if h.Queues[s.name] != nil {
		s.held.Refresh()
	}
}

// summary is a source on the overview.
type summary struct {
	Source   string
	Stats    latest.Reading[operator.State]
	Tiles    []tile
	Provider bool // whether its queues are known
	Queues   latest.Reading[[]gauge.Queue]
}

func (v *visit) overview(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, v.waits.counts)
	defer cancel()
	v.report.Refresh()
	for _, s := range v.sources {
		s.refresh(v.Handler)
	}
	report := v.report.Get(ctx)
	shown := struct {
		Found   []fault
		Known   bool // whether everything was looked at
		Noted   int64
		Sources []summary
	}{Known: !report.At.IsZero()}
	for _, s := range v.sources {
		now, queues := s.counts.Get(ctx), s.held.Get(ctx)
		tiles := v.tiles(s, now.Value)
		for _, c := range report.Value.Checks {
			if c.Source == s.name && c.Name == "unmatched" && c.Count != nil && v.Unmatched != nil {
				tiles = append(tiles, tile{Name: "unmatched", Href: "unmatched", Count: *c.Count, Bad: !c.Healthy, Says: []template.HTML{said(v.lang, "paid charges that match nothing of the application's")}})
			}
		}
		shown.Sources = append(shown.Sources, summary{s.name, now, tiles, v.Queues[s.name] != nil, queues})
		shown.Found = append(shown.Found, v.faults(s, now, queues)...)
		shown.Known = shown.Known && !now.At.IsZero()
		shown.Noted += now.Value.Acknowledged
	}
	shown.Found = v.judged(shown.Found, report.Value)
	return v.render(http.StatusOK, "overview", v.say("Overview"), shown)
}

// tile is a number on the overview, and where it leads.
type tile struct {
	Name   idem.State // or another word for these events
	Href   string
	Count  int64
	Oldest time.Duration
	Bad    bool
	Says   []template.HTML
}

func (v *visit) tiles(s *source, n operator.State) []tile {
	events := func(name idem.State, of idem.Backlog, bad bool, says lang.Text) tile {
		href := "events?" + query(field{"source", s.name}, field{"state", string(name)})
		return tile{Name: name, Href: href, Count: of.Events, Oldest: of.Oldest, Bad: bad && of.Events > 0, Says: []template.HTML{said(v.lang, says)}}
	}
	next := lang.Text("stored, workers are next")
	if lacksWorkers(n) {
		next = "stored, and no workers are alive"
	}
	failing := events(failing, idem.Backlog{Events: n.Failing.Events + n.FailingAcknowledged, Oldest: n.Failing.Oldest}, true, "failed, and tried again by themselves")
	for _, t := range n.FailingTypes {
		failing.Says = append(failing.Says, template.HTML(v.lang.Number(t.Events)+" ")+long(cmp.Or(t.Type, "–")))
	}
	blocked := tile{Name: "blocked", Href: "blocked?" + query(field{"source", s.name}), Count: n.BlockedKeys, Bad: n.BlockedKeys+n.Standing > 0, Says: []template.HTML{said(v.lang, "entities whose events wait for an earlier one")}}
	if n.Standing > 0 {
		blocked.Says = append(blocked.Says, count(v.lang, n.Standing, "%s event behind a parked one", "%s events behind a parked one"))
	}
	return []tile{
		events(idem.StatePending, n.Pending, lacksWorkers(n), next),
		failing,
		events(idem.StateParked, n.Parked, true, "failed, and wait for you"),
		blocked,
		events(idem.StateUnhandled, n.Unhandled, false, "no handler when they came"),
	}
}

func (v *visit) blocked(ctx context.Context) error {
	shown, all, err := v.source.events.Blocked(ctx, maxShown)
	if err != nil {
		return err
	}
	for n := range shown {
		v.hide(&shown[n].LastError)
	}
	return v.render(http.StatusOK, "blocked", v.say("Blocked entities"), struct {
		All   int64
		Shown []operator.Blocked
	}{all, shown})
}

// release resumes a provider's queue, or removes its penalty.
func (v *visit) release(context.Context) error {
	return v.changeQueue("release", gauge.Queues.Release)
}

// enable has the provider put events into a queue again.
func (v *visit) enable(context.Context) error { return v.changeQueue("enable", gauge.Queues.Enable) }

func (v *visit) changeQueue(verb string, change func(gauge.Queues, context.Context, string) (string, error)) error {
	s, id := v.source, v.r.PostForm.Get("queue")
	queues := v.Queues[s.name]
	if queues == nil {
		return refuse(http.StatusNotFound, "The queues of this source are not known here.")
	}
	op, reason := v.operator(), reasonOf(v.r.PostForm)
	return v.begin(verb, func(ctx context.Context) error {
		defer s.held.Forget()
		return op.Record(ctx, verb+" queue", "queue "+id, reason, func(ctx context.Context) (string, error) { return change(queues, ctx, id) })
	})
}

// pause has no event of a type or an entity begin for some hours.
func (v *visit) pause(ctx context.Context) error {
	form, s := v.r.PostForm, v.source
	hours, err := strconv.Atoi(form.Get("hours"))
	reason := reasonOf(form)
	switch {
	case err != nil || hours < 1 || hours > int(operator.MaxPause/time.Hour):
		return refuse(http.StatusBadRequest, "Say for how many hours, %s at most: nothing was done.", int64(operator.MaxPause/time.Hour))
	case reason == "":
		return refuse(http.StatusBadRequest, "Say why: nothing was done. Go back, and fill in the reason.")
	}
	plan, err := v.operator().PlanPause(ctx, pauseIn(form), time.Duration(hours)*time.Hour)
	if err != nil {
		return err
	}
	return v.begin("pause", func(ctx context.Context) error {
		defer s.counts.Forget()
		_, err := plan.Do(ctx, reason)
		return err
	})
}

// resume ends a pause.
func (v *visit) resume(ctx context.Context) error {
	s := v.source
	plan, err := v.operator().PlanResume(ctx, pauseIn(v.r.PostForm))
	if err != nil {
		return err
	}
	return v.begin("resume", func(ctx context.Context) error {
		defer s.counts.Forget()
		_, err := plan.Do(ctx, reasonOf(v.r.PostForm))
		return err
	})
}

func pauseIn(form url.Values) operator.Pause {
	return operator.Pause{Type: strings.TrimSpace(form.Get("type")), Key: strings.TrimSpace(form.Get("entity"))}
}
