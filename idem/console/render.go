package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/lang"
)

//go:embed page
var files embed.FS

// templates are the pages in each language, each in the layout.
var templates = map[lang.Lang]map[string]*template.Template{lang.English: parse(lang.English), lang.Portuguese: parse(lang.Portuguese)}

func parse(l lang.Lang) map[string]*template.Template {
	layout := template.Must(template.New("layout.html").Funcs(words(l)).Funcs(template.FuncMap{
		"state": state, "long": long, "query": pairs,
		"query_fields": func(fields []field) template.URL { return template.URL(query(fields...)) },
		"asURL":        func(query string) template.URL { return template.URL(query) },
		"dict":         dict,
		"row_key":      rowKey,
	}).ParseFS(files, "page/layout.html", "page/parts.html"))
	all := map[string]*template.Template{}
	for _, name := range []string{"overview", "events", "entity", "event", "find", "search", "conflicts", "blocked", "queues", "trail", "action", "confirm", "problem"} {
		all[name] = template.Must(template.Must(layout.Clone()).ParseFS(files, "page/"+name+".html"))
	}
	return all
}

// live are the pages that refresh themselves, and after how many seconds.
var live = map[string]int{"overview": 5, "events": 5, "event": 5, "entity": 5, "blocked": 5, "trail": 5, "conflicts": 30, "queues": 30}

// liveRunning is the same for a page that shows an action which runs.
const liveRunning = 2

// policy limits browsers on each page; those that are rendered add the page's scripts.
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
	Workers     bool     // the source has
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
		f.Source, f.Workers = v.source.name, v.source.workers
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

// state marks a state up.
func state(s idem.State) template.HTML {
	if s == "" {
		return "–"
	}
	name := template.HTMLEscapeString(string(s))
	return template.HTML(`<span class="state ` + name + `">` + name + `</span>`)
}

// longest is the number of letters of a text that are not broken up, as long as there is a line for them.
const longest = 36

// long marks up where a text, an id for example, may go on in another line: after its
// separators. A copy of it is the text.
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
	if len(parts) < 2 {
		return template.HTML(strings.Join(parts, ""))
	}
	return template.HTML("<span>" + strings.Join(parts, "<wbr>") + "</span>") // one element, as a cell on a phone needs it
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
