package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/lang"
)

//go:embed page
var files embed.FS

// templates are the pages in each language, each in the layout.
var templates = map[lang.Lang]map[string]*template.Template{lang.English: parse(lang.English), lang.Portuguese: parse(lang.Portuguese)}

func parse(l lang.Lang) map[string]*template.Template {
	layout := template.Must(template.New("layout.html").Funcs(words(l)).Funcs(template.FuncMap{
		"long": long, "query": pairs,
		"query_fields": func(fields []field) template.URL { return template.URL(query(fields...)) },
		"asURL":        func(query string) template.URL { return template.URL(query) },
		"dict":         dict,
		"row_key":      rowKey,
		"event_of":     store.EventOf,
	}).ParseFS(files, "page/layout.html", "page/parts.html"))
	all := map[string]*template.Template{}
	for _, name := range []string{"overview", "events", "entity", "event", "find", "conflicts", "blocked", "unmatched", "trail", "action", "confirm", "problem"} {
		all[name] = template.Must(template.Must(layout.Clone()).ParseFS(files, "page/"+name+".html"))
	}
	return all
}

// live has the pages that refresh themselves, with the interval in seconds.
var live = map[string]int{"overview": 5, "events": 5, "event": 5, "entity": 5, "blocked": 5, "trail": 5, "conflicts": 30}

// liveRunning is the interval for a page with a running action.
const liveRunning = 2

// policy limits browsers on each page. Rendered pages add their scripts to it.
const policy = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// frame holds the parts of every page.
type frame struct {
	Lang        lang.Lang
	Other       other
	Page, Title string
	User        string
	Access      Access
	Source      string   // that the page is about
	Sources     []string // all
	Switch      bool     // whether the page is about one of them
	Verbs       []verb   // that lists offer
	Live        int      // seconds after which the page refreshes itself; 0 for never
	Nonce       string   // of the page's scripts
	Here        string   // the address of this page with all boxes of its lists checked
	All         bool     // whether they are
	Data        any
}

func (v *visit) render(status int, name, title string, data any) error {
	f := frame{Lang: v.lang, Other: v.other(), Page: name, Title: title, User: v.user, Access: v.access, Switch: name == "events" || name == "blocked" || name == "conflicts" || name == "trail", Data: data}
	f.Nonce = rand.Text()
	scripts := "; script-src 'nonce-" + f.Nonce + "'"
	if v.r.Method == http.MethodGet && status == http.StatusOK {
		f.Live = cmp.Or(v.live, live[name])
	}
	if f.Live > 0 {
		scripts += "; connect-src 'self'"
	}
	v.w.Header().Set("Content-Security-Policy", policy+scripts)
	here := v.r.URL.Query()
	f.All = here.Get("boxes") == "all"
	here.Set("boxes", "all")
	f.Here = here.Encode()
	if v.source != nil {
		f.Source = v.source.name
		f.Verbs = offered(func(a verb) bool { return a.OnLists })
	}
	for _, s := range v.sources {
		f.Sources = append(f.Sources, s.name)
	}
	var page bytes.Buffer
	if err := templates[v.lang][name].Execute(&page, f); err != nil {
		return fmt.Errorf("console: page %s: %w", name, err)
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = page.WriteTo(v.w) // the client is gone
	return nil
}

// dict returns the arguments of a part of a page: names, each followed by its value.
func dict(nameAndValue ...any) map[string]any {
	all := map[string]any{}
	for i := 0; i+1 < len(nameAndValue); i += 2 {
		all[nameAndValue[i].(string)] = nameAndValue[i+1]
	}
	return all
}

// failing is the page's name for the state of pending events that have failed and are tried again.
const failing idem.State = "failing"

// standing returns the state of an event as the page names it.
func standing(e idem.StoredEvent) idem.State {
	if e.State == idem.StatePending && e.Attempts+e.Crashes > 0 {
		return failing
	}
	return e.State
}

// state returns a state with its markup.
func state(l lang.Lang, s idem.State) template.HTML {
	if s == "" {
		return "–"
	}
	return template.HTML(`<span class="state ` + template.HTMLEscapeString(string(s)) + `">` + template.HTMLEscapeString(portuguese.Say(l, lang.Text(s))) + `</span>`)
}

// states is state of a number of events. None of them is calm.
func states(l lang.Lang, s idem.State, n int64) template.HTML {
	text := string(state(l, s))
	one := portuguese.Say(l, lang.Text(s))
	if many := plurals[one]; n != 1 && many != "" {
		text = strings.Replace(text, one, many, 1)
	}
	if n == 0 {
		text = strings.Replace(text, `class="state `+string(s), `class="state`, 1)
	}
	return template.HTML(text)
}

var plurals = map[string]string{"pendente": "pendentes", "isolado": "isolados"}

// longest is the length of the longest word that is not broken while a line has room for it.
const longest = 36

// long returns a text with marks where a line may break: behind its separators. A copy from the page is the
// text itself.
func long(text string) template.HTML {
	var parts []string
	for text != "" {
		end := len(text)
		if n := strings.IndexAny(text, "_-.:/&@,;=#%"); n >= 0 {
			end = n + 1
		}
		part := template.HTMLEscapeString(text[:end])
		if slices.ContainsFunc(strings.Fields(text[:end]), func(word string) bool { return utf8.RuneCountInString(word) > longest }) {
			part = `<span class="run">` + part + `</span>`
		}
		parts, text = append(parts, part), text[end:]
	}
	return template.HTML("<bdi>" + strings.Join(parts, "<wbr>") + "</bdi>") // one element, as a cell on a phone needs it
}

// pairs writes names and values as an address has them.
func pairs(nameAndValue ...string) template.URL {
	var fields []field
	for i := 0; i+1 < len(nameAndValue); i += 2 {
		fields = append(fields, field{nameAndValue[i], nameAndValue[i+1]})
	}
	return template.URL(query(fields...))
}

// file serves a part of the pages.
func (v *visit) file(context.Context) error {
	http.ServeFileFS(v.w, v.r, files, "page/"+path.Base(v.r.URL.Path))
	return nil
}

// languages are those of the page, each with its own name.
var languages = map[lang.Lang]string{lang.English: "English", lang.Portuguese: "Português"}

// cookie keeps the language that a person has chosen. Without a path, browsers send it to all
// pages, which lie in one folder, wherever that is mounted.
const cookie = "console_lang"

// language returns the language of a request: the one in its address, which is then kept in a cookie; the one
// in the cookie; or the one that the browser prefers.
func language(w http.ResponseWriter, r *http.Request) lang.Lang {
	if l := lang.Lang(r.URL.Query().Get("lang")); languages[l] != "" {
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: string(l), MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode})
		return l
	}
	if c, err := r.Cookie(cookie); err == nil && languages[lang.Lang(c.Value)] != "" {
		return lang.Lang(c.Value)
	}
	return lang.OfBrowser(strings.Join(r.Header.Values("Accept-Language"), ","))
}

// other is a link to a page in the other language.
type other struct {
	Lang       lang.Lang
	Name, Href string
}

// other returns a link to this page in the other language, or to the overview if this page is the answer to a
// form.
func (v *visit) other() other {
	l := lang.Portuguese
	if v.lang == l {
		l = lang.English
	}
	page, values := "./", url.Values{}
	if v.r.Method == http.MethodGet {
		page, values = "", v.r.URL.Query()
	}
	values.Set("lang", string(l))
	return other{l, languages[l], page + "?" + values.Encode()}
}

// say says a text in the language of the request.
func (v *visit) say(t lang.Text, args ...any) string { return portuguese.Say(v.lang, t, args...) }

// words are the functions of templates that depend on the language.
func words(l lang.Lang) template.FuncMap {
	return template.FuncMap{
		"say": func(t lang.Text, args ...any) template.HTML { return said(l, t, args...) },
		"count": func(n any, one, more lang.Text) (template.HTML, error) {
			i, err := integer(n)
			return count(l, i, one, more), err
		},
		"state":      func(s idem.State) template.HTML { return state(l, s) },
		"states":     func(s idem.State, n int64) template.HTML { return states(l, s, n) },
		"standing":   func(e idem.StoredEvent) template.HTML { return state(l, standing(e)) },
		"state_name": func(name string) string { return portuguese.Say(l, lang.Text(name)) },
		"recorded":   func(text string) string { return recorded(l, text) },
		"number": func(n any) (string, error) {
			i, err := integer(n)
			return l.Number(i), err
		},
		"age":   l.Age,
		"int64": func(n int) int64 { return int64(n) },
		"utc":   utc,
		"why":   func(e operator.Lookup) template.HTML { return why(l, e) },
	}
}

// said says a text of the page, which may have markup. What comes from outside is escaped, and isolated: letters
// that are written from right to left, or claim to be, do not turn the sentence around.
func said(l lang.Lang, t lang.Text, args ...any) template.HTML {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = isolated(arg)
		case error:
			args[i] = isolated(arg.Error())
		}
	}
	return template.HTML(portuguese.Say(l, t, args...))
}

func isolated(text string) template.HTML {
	return template.HTML("<bdi>" + template.HTMLEscapeString(text) + "</bdi>")
}

func count(l lang.Lang, n int64, one, more lang.Text) template.HTML {
	return template.HTML(portuguese.Count(l, n, one, more))
}

func integer(n any) (int64, error) {
	switch n := n.(type) {
	case int:
		return int64(n), nil
	case int64:
		return n, nil
	}
	return 0, fmt.Errorf("console: %T is no integer", n)
}

// utc marks a time up, to the second.
func utc(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	return template.HTML(t.Format(`<time datetime="2006-01-02T15:04:05Z">2006-01-02 15:04:05 UTC</time>`)) // digits only
}

// why marks up the sentences that say why an event is not done, with the times and the texts from outside in
// them.
func why(l lang.Lang, e operator.Lookup) template.HTML {
	says := marked(e).Says(string(l), func(t time.Time) string { return mark + t.Format(time.RFC3339Nano) + mark })
	var all strings.Builder
	for i, part := range strings.Split(says, mark) {
		switch t, err := time.Parse(time.RFC3339Nano, part); {
		case i%2 == 0:
			all.WriteString(template.HTMLEscapeString(part))
		case err == nil:
			all.WriteString(string(utc(t)))
		default:
			all.WriteString(string(isolated(part)))
		}
	}
	return template.HTML(all.String())
}

// mark is in no text of Postgres's.
const mark = "\x00"

// marked returns an event with marks around its texts from outside, which are cut to fit into a sentence.
func marked(e operator.Lookup) operator.Lookup {
	const longest = 190
	for _, text := range []*string{&e.ID, &e.Type, &e.LastError, &e.Claim.Host, &e.Acknowledged.Actor, &e.Acknowledged.Reason} {
		letters := []rune(strings.TrimRight(strings.Join(strings.Fields(*text), " "), "."))
		if len(letters) > longest {
			letters = append(letters[:longest], '…')
		}
		if *text != "" {
			*text = mark + string(letters) + mark
		}
	}
	if e.First != nil {
		e.First = new(marked(*e.First))
	}
	return e
}

// told returns the status and the text of an error for people. The error of a connection to Postgres names its
// host and role, and is only logged.
func (v *visit) told(err error) (status int, text string) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status, v.say(r.text, r.args...)
	}
	v.Logger.ErrorContext(v.r.Context(), "a page of the console failed", slog.String("error", err.Error()))
	if pgtx.IsReadOnly(err) {
		return http.StatusServiceUnavailable, v.say("Postgres takes no writes: it is a replica, as after a failover, or its transactions are read-only by default. Connect the application to the primary.")
	}
	if hasNoAnswer(err) {
		return http.StatusServiceUnavailable, v.say("Postgres does not answer in time: it is unavailable, busy, or its tables are locked. The error is in this application's log.")
	}
	return http.StatusInternalServerError, err.Error()
}

// hasNoAnswer reports whether Postgres was not reached, or did not answer in time.
func hasNoAnswer(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network || errors.Is(err, io.ErrUnexpectedEOF) || pgtx.TookTooLong(err) || pgtx.SQLState(err) != "" && pgtx.Unavailable(err)
}

// refusal is an error with a text for people and a status.
type refusal struct {
	status int
	text   lang.Text
	args   []any
}

func (r *refusal) Error() string { return portuguese.Say(lang.English, r.text, r.args...) }

func refuse(status int, text lang.Text, args ...any) error { return &refusal{status, text, args} }
