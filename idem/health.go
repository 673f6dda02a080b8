package idem

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Health is an http.Handler for monitors. It answers 200 while events are processed,
// and 503 once something is wrong that would make a provider slow down or stop its
// queue, early enough to prevent that. The body has the result of each check and,
// for one that fails, what to do:
//
//	{"healthy":false,"checks":[{"source":"asaas","check":"deliveries","healthy":false,"says":"5 deliveries have failed in a row: …"}, …]}
//
// It has no secrets and no personal data, and no ids but those of an entity that stands
// still and of the event that it waits for. Health asks nobody for a password:
// if not everybody may know these, or that deliveries fail, protect its path.
//
// The checks are:
//
//	postgres    it answers within Timeout, and can be written to
//	deliveries  fewer than MaxFailures in a row have failed in this process
//	retrying    no event of a Processor has failed for longer than MaxRetrying
//	workers     no event that workers are to process has been due for longer than
//	            MaxPending
//	held        no event waits for a parked one of its entity
//	broker      the broker of an Outbox has not been unavailable for longer than MaxPending
//	clock       no event of an Inbox arrived in the future: the database's clock was put
//	            back, and workers wait until it is that late again
//	spool       no event has been in an Inbox's Spool for longer than MaxSpooled, a
//	            fifth of it is free, files can be read and written, and nothing has
//	            been set aside
//	canary      it runs, and has not failed twice in a row
//
// A delivery that is not genuine does not count as failed, unless the reason is that
// no secret is configured.
//
// The checks run once a second at most, however many requests come; concurrent
// requests share a run. The retrying and held checks read all events that are not done,
// so each runs at most a twentieth of the time. With some hundred thousand such events
// it takes longer than Timeout: then it says that it does not know, and passes.
//
// # Alert on it, do not restart because of it
//
// Do not use it as a liveness probe in Kubernetes: a restart does not bring Postgres
// back, and cuts off deliveries. For liveness use NewHealth() without parts, which
// is healthy as long as the process serves, or a TCP probe.
//
// As a readiness probe it does harm when all replicas have the same problem: an
// address without a ready replica fails every delivery, also those that would have
// succeeded. The canary's fail, too, and then keep all replicas from becoming ready
// again. For readiness, leave canaries out, or use NewHealth().
//
// The exported fields are settings: change them before the first request.
type Health struct {
	// MaxFailures is the number of failed deliveries in a row that fails the check;
	// 0 turns it off. Asaas stops its queue after 15. Default: 5.
	MaxFailures int

	// MaxRetrying is how long an event may be retrying, since its first delivery; 0
	// turns the check off. Asaas stops its queue after half a day. Default: 10
	// minutes.
	MaxRetrying time.Duration

	// MaxPending is how long an event may be due, in addition to the Timeout of the
	// receiver; 0 turns the check off, and that of the clock. Default: 5 minutes.
	MaxPending time.Duration

	// MaxSpooled is how long an event may be in a [Spool], while Postgres does not take
	// it; 0 turns the check off. Default: 1 minute.
	MaxSpooled time.Duration

	// Timeout is how long each query to Postgres may take. Default: 2 seconds.
	Timeout time.Duration

	// Logger gets a line when a check begins to fail or passes again; nil logs
	// nothing. Default: slog.Default().
	Logger *slog.Logger

	parts []Part
	since time.Time // of NewHealth

	turn chan struct{} // has an element while somebody looks; guards what follows
	last HealthReport
	at   time.Time
	ages map[ageOf]age

	standing map[*Common]standing
}

var _ http.Handler = (*Health)(nil)

// HealthReport is what [Health] answers.
type HealthReport struct {
	Healthy bool          `json:"healthy"`
	Checks  []HealthCheck `json:"checks"`
}

// HealthCheck is the result of one check of [Health].
type HealthCheck struct {
	Source  string `json:"source"` // the source's name, or the canary's
	Name    string `json:"check"`  // "postgres" and so on, see [Health]
	Healthy bool   `json:"healthy"`
	Says    string `json:"says"` // the result; if it is not healthy, also what to do
}

// NewHealth returns a Health that checks these parts of a program, with its settings
// at their defaults.
func NewHealth(parts ...Part) *Health {
	return &Health{
		MaxFailures: 5, MaxRetrying: 10 * time.Minute, MaxPending: 5 * time.Minute,
		MaxSpooled: time.Minute, Timeout: 2 * time.Second,
		Logger: slog.Default(), parts: parts, since: time.Now(), turn: make(chan struct{}, 1), ages: make(map[ageOf]age),
		standing: make(map[*Common]standing),
	}
}

// ServeHTTP answers with the report as JSON: 200 if it is healthy, else 503.
func (h *Health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	report := h.Report()
	status := http.StatusOK
	if !report.Healthy {
		status = http.StatusServiceUnavailable
	}
	body, _ := json.Marshal(report) // texts
	w.Header().Set("Cache-Control", "no-store")
	respond(w, status, string(body))
}

// healthEvery is how often everything is looked at, at most.
const healthEvery = time.Second

// Report returns what ServeHTTP answers. It is at most a second old.
func (h *Health) Report() HealthReport {
	h.turn <- struct{}{} // whoever comes meanwhile waits for this look
	defer func() { <-h.turn }()
	if !h.at.IsZero() && time.Since(h.at) < healthEvery {
		return h.last
	}
	x := &examination{health: h, reached: make(map[*pgxpool.Pool]bool)}
	x.report = HealthReport{Healthy: true, Checks: []HealthCheck{}}
	for _, p := range h.parts {
		p.examine(context.Background(), x)
	}
	h.logChanges(x)
	h.last, h.at = x.report, time.Now()
	return h.last
}

// logChanges logs the checks that are otherwise than at the last look, and what else
// waits for a parked event: who has seen the line of the first may wait for the next.
func (h *Health) logChanges(x *examination) {
	for n, c := range x.report.Checks {
		before := n >= len(h.last.Checks) || h.last.Checks[n].Healthy
		more := c.Name == heldCheck && n < len(h.last.Checks) && c.Says != h.last.Checks[n].Says
		if h.Logger == nil || c.Healthy == before && (c.Healthy || !more) {
			continue
		}
		attrs := []slog.Attr{slog.String("source", c.Source), slog.String("check", c.Name), slog.String("says", c.Says)}
		level, message := slog.LevelInfo, "webhook health check is well again"
		if !c.Healthy {
			level, message = slog.LevelError, "webhook health check fails"
		}
		if err := x.causes[n]; err != nil {
			attrs = append(attrs, slog.String("error", err.Error()))
		}
		_ = pgtx.Protect(func() error { h.Logger.LogAttrs(context.Background(), level, message, attrs...); return nil })
	}
}
