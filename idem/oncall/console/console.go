package console

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/internal/latest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/internal/lang"
)

// Access holds the rights of a user. The zero value allows nothing.
type Access struct {
	See    bool // all pages, without bodies; Reveal and Act have no effect without it
	Reveal bool // bodies; each look is recorded in the audit trail
	Act    bool // replay, requeue, discard, dry run, pause, release or enable a queue; each is recorded
}

// Handler serves the page. Make it with [New], and call [Handler.Close] at the end.
//
// The exported fields are settings: change them before the first request.
type Handler struct {
	// Access returns the name of the user that makes a request, for the audit trail,
	// and their rights. Without a name they may only see. Default: nil, every
	// request is answered 403.
	Access func(*http.Request) (user string, a Access)

	// Health is asked for the first line of the overview, which says what is not well. Give it that of the
	// program, with its canary and the other parts. Default: that of New's receivers.
	Health *health.Health

	// Queues are the providers' delivery queues, by the name of the source of the
	// events that they hold. Default: none.
	Queues map[string]gauge.Queues

	// Unmatched returns the newest paid charges that match nothing of the application's, n at most, as the List
	// of charges.Unmatched does. The overview has their number if that is a part of Health. Default: nil.
	Unmatched func(ctx context.Context, n int) ([]Charge, error)

	// Charges returns the charges of a customer, or of a reference of the application's own, the newest first, n
	// at most, as charges.Find does: the field at the top of the page finds them. Default: nil.
	Charges func(ctx context.Context, name string, n int) ([]Charge, error)

	// Logger gets the errors of pages, of dry runs, and of actions in the background.
	// Default: slog.Default().
	Logger *slog.Logger

	sources   []*source
	protected *http.CrossOriginProtection
	waits     waits
	running   *running
	report    *latest.Value[health.Report]
}

var _ http.Handler = (*Handler)(nil)

// source is a receiver, and the last readings of its state.
type source struct {
	name     string
	receiver idem.Receiver
	events   *operator.Operator // without a name: it reads
	counts   *latest.Value[operator.State]
	held     *latest.Value[[]gauge.Queue] // of its provider
}

// New returns a page for the events of receivers. Of several receivers of
// one source it uses the first.
func New(receivers ...idem.Receiver) *Handler {
	h := &Handler{
		Logger:    slog.Default(),
		protected: http.NewCrossOriginProtection(),
		waits:     defaultWaits,
		running:   newRunning(),
	}
	var parts []health.Part
	for _, r := range receivers {
		parts = append(parts, health.Of(r))
		events := operator.New(r, "")
		s := &source{name: events.SourceName(), receiver: r, events: events, counts: reading(h, freshCounts, events.State)}
		s.held = reading(h, freshQueues, func(ctx context.Context) ([]gauge.Queue, error) { return h.Queues[s.name].Queues(ctx) })
		if !slices.ContainsFunc(h.sources, func(other *source) bool { return other.name == s.name }) {
			h.sources = append(h.sources, s)
		}
	}
	h.report = reading(h, freshCounts, h.examine)
	h.Health = health.New(parts...)
	h.Health.Logger = nil // the program's own logs the same
	return h
}

// Close ends the actions that run in the background, and returns when they have
// ended. A replay ends after the event that is being processed; its record says how
// far it came.
func (h *Handler) Close() { h.running.close() }

// visit is one request.
type visit struct {
	*Handler
	w      http.ResponseWriter
	r      *http.Request
	user   string
	access Access
	lang   lang.Lang
	source *source // that the request names, or the first
	live   int     // seconds after which the page refreshes itself, if it is not as often as others of its kind
}

// operator acts for the user.
func (v *visit) operator() *operator.Operator { return operator.New(v.source.receiver, v.user) }

// redirect leads to a page, by GET. The address is relative, which http.Redirect
// would make absolute without knowing the prefix that a proxy has cut off.
func (v *visit) redirect(to string) {
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(http.StatusSeeOther)
}

// page answers a request that a user may make.
type page struct {
	method string
	may    func(Access) bool
	show   func(*visit, context.Context) error
}

func see(a Access) bool { return a.See }

func reveal(a Access) bool { return a.See && a.Reveal }

func act(a Access) bool { return a.See && a.Act }

// pages are the pages by the last element of their path. All of them are in one folder, so that a relative
// link is a name.
var pages = map[string]page{
	"":          {http.MethodGet, see, (*visit).overview},
	"style.css": {http.MethodGet, see, (*visit).file},
	"times.js":  {http.MethodGet, see, (*visit).file},
	"live.js":   {http.MethodGet, see, (*visit).file},
	"events":    {http.MethodGet, see, (*visit).events},
	"event":     {http.MethodGet, see, (*visit).event},
	"entity":    {http.MethodGet, see, (*visit).entity},
	"find":      {http.MethodGet, see, (*visit).find},
	"conflicts": {http.MethodGet, see, (*visit).conflicts},
	"blocked":   {http.MethodGet, see, (*visit).blocked},
	"unmatched": {http.MethodGet, see, (*visit).unmatched},
	"trail":     {http.MethodGet, see, (*visit).trail},
	"action":    {http.MethodGet, see, (*visit).action},
	"reveal":    {http.MethodPost, reveal, (*visit).reveal},
	"confirm":   {http.MethodGet, act, (*visit).confirm},
	"choose":    {http.MethodPost, act, (*visit).confirm}, // by checkboxes, which are more than an address may hold
	"act":       {http.MethodPost, act, (*visit).act},
	"stop":      {http.MethodPost, act, (*visit).stop},
	"release":   {http.MethodPost, act, (*visit).release},
	"enable":    {http.MethodPost, act, (*visit).enable},
	"pause":     {http.MethodPost, act, (*visit).pause},
	"resume":    {http.MethodPost, act, (*visit).resume},
}

const maxForm = 1 << 20 // bytes

// waits are the times after which a request goes on without what it waits for.
type waits struct {
	page   time.Duration // for the database
	scan   time.Duration // for a page that reads all of it, on request
	counts time.Duration // of the overview
	result time.Duration // of an action
}

var defaultWaits = waits{page: 8 * time.Second, scan: 30 * time.Second, counts: 100 * time.Millisecond, result: 2 * time.Second}

// ServeHTTP serves a page, or runs the action of a form.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	v := &visit{Handler: h, w: w, r: r, lang: language(w, r)}
	if err := v.serve(); err != nil {
		v.problem(err)
	}
}

func (v *visit) serve() error {
	if v.Handler.Access == nil {
		return refuse(http.StatusForbidden, "Nobody may see this page: the application's console has no Access function.")
	}
	if v.user, v.access = v.Handler.Access(v.r); v.user == "" {
		v.access.Reveal, v.access.Act = false, false // no name for the trail
	}
	if !v.access.See {
		return refuse(http.StatusForbidden, "You may not see this page: ask whoever runs the application.")
	}
	if v.r.URL.Path == "" { // of http.StripPrefix: links would lead out of the page
		asked, _, _ := strings.Cut(v.r.RequestURI, "?")
		v.redirect(path.Base(asked) + "/")
		return nil
	}
	_, name := path.Split(v.r.URL.Path)
	p, ok := pages[name]
	switch {
	case !ok:
		return refuse(http.StatusNotFound, "There is no such page.")
	case v.r.Method != p.method && (v.r.Method != http.MethodHead || p.method != http.MethodGet):
		v.w.Header().Set("Allow", p.method)
		return refuse(http.StatusMethodNotAllowed, "This page takes %s only.", p.method)
	}
	if err := v.protected.Check(v.r); err != nil {
		return refuse(http.StatusForbidden, "This form is not from this page, and was refused: %s.", err)
	}
	if !p.may(v.access) {
		return refuse(http.StatusForbidden, "You may not do this: ask whoever runs the application.")
	}
	if err := v.read(); err != nil {
		return err
	}
	limit := v.waits.page
	if v.r.Form.Get("all") != "" {
		limit = v.waits.scan
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), limit)
	defer cancel()
	return p.show(v, ctx)
}

// read parses the form, and finds the source that it names.
func (v *visit) read() error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return refuse(http.StatusBadRequest, "The form cannot be read.")
	}
	for _, values := range v.r.Form {
		if !slices.ContainsFunc(values, unstorable) {
			continue
		}
		return refuse(http.StatusBadRequest, "The form has bytes that are not text.")
	}
	name := v.r.Form.Get("source")
	for _, s := range v.sources {
		if name == "" || s.name == name {
			v.source = s
			return nil
		}
	}
	return refuse(http.StatusNotFound, "There is no such source of events.")
}

// problem answers with an error.
func (v *visit) problem(err error) {
	status, text := v.told(err)
	if !v.access.See { // nothing but that
		http.Error(v.w, text, status)
		return
	}
	if err := v.render(status, "problem", v.say("Error"), text); err != nil {
		http.Error(v.w, err.Error(), http.StatusInternalServerError)
	}
}
