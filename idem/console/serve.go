package console

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/internal/lang"
)

// page answers a request that a user may make.
type page struct {
	method string
	may    func(Access) bool
	show   func(*visit, context.Context) error
}

func see(a Access) bool { return a.See }

func reveal(a Access) bool { return a.See && a.Reveal }

func act(a Access) bool { return a.See && a.Act }

// pages are all there are, by the last part of the path. None is below another, so
// that a link from any of them to any other is a name.
var pages = map[string]page{
	"":          {http.MethodGet, see, (*visit).overview},
	"style.css": {http.MethodGet, see, (*visit).file},
	"times.js":  {http.MethodGet, see, (*visit).file},
	"live.js":   {http.MethodGet, see, (*visit).file},
	"events":    {http.MethodGet, see, (*visit).events},
	"event":     {http.MethodGet, see, (*visit).event},
	"entity":    {http.MethodGet, see, (*visit).entity},
	"find":      {http.MethodGet, see, (*visit).find},
	"search":    {http.MethodGet, see, (*visit).search},
	"conflicts": {http.MethodGet, see, (*visit).conflicts},
	"blocked":   {http.MethodGet, see, (*visit).blocked},
	"queues":    {http.MethodGet, see, (*visit).queues},
	"trail":     {http.MethodGet, see, (*visit).trail},
	"action":    {http.MethodGet, see, (*visit).action},
	"reveal":    {http.MethodPost, reveal, (*visit).reveal},
	"confirm":   {http.MethodGet, act, (*visit).confirm},
	"choose":    {http.MethodPost, act, (*visit).confirm}, // by checkboxes, which are more than an address may hold
	"act":       {http.MethodPost, act, (*visit).act},
	"stop":      {http.MethodPost, act, (*visit).stop},
	"release":   {http.MethodPost, act, (*visit).release},
}

const (
	maxForm  = 1 << 20          // bytes
	pageTime = 8 * time.Second  // of a page that reads the database
	scanTime = 30 * time.Second // of one that reads all of it, as somebody has asked for
)

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
		v.redirect(path.Base(v.asked()) + "/")
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
	limit := pageTime
	if v.r.Form.Get("all") != "" || v.r.Form.Get("long") != "" {
		limit = scanTime
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), limit)
	defer cancel()
	return p.show(v, ctx)
}

// asked is the path that was asked for, before a prefix was stripped.
func (v *visit) asked() string {
	asked, _, _ := strings.Cut(v.r.RequestURI, "?")
	return asked
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

// titles are the names of statuses that are a problem.
var titles = map[int]lang.Text{
	http.StatusBadRequest:          "Bad request",
	http.StatusForbidden:           "Forbidden",
	http.StatusNotFound:            "Not found",
	http.StatusMethodNotAllowed:    "Method not allowed",
	http.StatusConflict:            "Conflict",
	http.StatusInternalServerError: "Error",
	http.StatusServiceUnavailable:  "Not now",
}

// problem answers with an error.
func (v *visit) problem(err error) {
	status, text := v.told(err)
	if !v.access.See { // nothing but that
		http.Error(v.w, text, status)
		return
	}
	if err := v.render(status, "problem", v.say(titles[status]), text); err != nil {
		http.Error(v.w, err.Error(), http.StatusInternalServerError)
	}
}
