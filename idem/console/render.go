package console

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
)

//go:embed page
var files embed.FS

// templates are the pages, each in the layout.
var templates = parse()

func parse() map[string]*template.Template {
	layout := template.Must(template.New("layout.html").Funcs(template.FuncMap{
		"number": number, "age": age, "utc": utc, "state": state, "query": pairs,
		"query_fields": func(fields []field) template.URL { return template.URL(query(fields...)) },
		"asURL":        func(query string) template.URL { return template.URL(query) },
		"dict":         dict,
	}).ParseFS(files, "page/layout.html", "page/parts.html"))
	all := map[string]*template.Template{}
	for _, name := range []string{"overview", "events", "entity", "event", "blocked", "queues", "trail", "action", "confirm", "problem"} {
		all[name] = template.Must(template.Must(layout.Clone()).ParseFS(files, "page/"+name+".html"))
	}
	return all
}

// frame is what each page has.
type frame struct {
	Page, Title string
	User        string
	Access      Access
	Source      string   // that the page is about
	Sources     []string // all
	Switch      bool     // whether the page is about one of them
	Workers     bool     // the source has
	Data        any
}

func (v *visit) render(status int, name, title string, data any) error {
	f := frame{Page: name, Title: title, User: v.user, Access: v.access, Switch: name == "events" || name == "blocked" || name == "trail", Data: data}
	if v.source != nil {
		f.Source, f.Workers = v.source.name, v.source.workers
	}
	for _, s := range v.sources {
		f.Sources = append(f.Sources, s.name)
	}
	var page bytes.Buffer
	if err := templates[name].Execute(&page, f); err != nil {
		return fmt.Errorf("console: page %s: %w", name, err)
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = page.WriteTo(v.w) // the client is gone
	return nil
}

// dict is what a part of a page is given: names, each followed by its value.
func dict(nameAndValue ...any) map[string]any {
	all := map[string]any{}
	for i := 0; i+1 < len(nameAndValue); i += 2 {
		all[nameAndValue[i].(string)] = nameAndValue[i+1]
	}
	return all
}

// number writes 10000 as 10,000.
func number(n any) string {
	digits := fmt.Sprint(n)
	start := 0
	if strings.HasPrefix(digits, "-") {
		start = 1
	}
	for i := len(digits) - 3; i > start; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// age writes a duration in its two largest units.
func age(d time.Duration) string {
	units := []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, u := range units {
		if d < u.of {
			continue
		}
		text := strconv.FormatInt(int64(d/u.of), 10) + " " + u.name
		if i+1 < len(units) && i < 2 && d%u.of >= units[i+1].of {
			text += " " + strconv.FormatInt(int64(d%u.of/units[i+1].of), 10) + " " + units[i+1].name
		}
		return text
	}
	return "less than 1 s"
}

// utc marks a time up, to the second.
func utc(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	return template.HTML(t.Format(`<time datetime="2006-01-02T15:04:05Z">2006-01-02 15:04:05</time>`)) // digits only
}

// state marks a state up.
func state(s idem.State) template.HTML {
	if s == "" {
		return "–"
	}
	name := template.HTMLEscapeString(string(s))
	return template.HTML(`<span class="state ` + name + `">` + name + `</span>`)
}

// pairs writes names and values as an address has them.
func pairs(nameAndValue ...string) template.URL {
	var fields []field
	for i := 0; i+1 < len(nameAndValue); i += 2 {
		fields = append(fields, field{nameAndValue[i], nameAndValue[i+1]})
	}
	return template.URL(query(fields...))
}

func (v *visit) style(context.Context) error {
	http.ServeFileFS(v.w, v.r, files, "page/style.css")
	return nil
}
