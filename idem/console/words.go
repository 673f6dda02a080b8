package console

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/lang"
)

// languages are those of the page, each with its own name.
var languages = []struct {
	Lang lang.Lang
	Name string
}{{lang.English, "English"}, {lang.Portuguese, "Português"}}

// cookie keeps the language that a person has chosen. Without a path, browsers send it to all
// pages, which lie in one folder, wherever that is mounted.
const cookie = "console_lang"

// language returns the language of a request: as its address says, which is kept; as was kept;
// as the browser prefers.
func language(w http.ResponseWriter, r *http.Request) lang.Lang {
	if l, ok := known(r.URL.Query().Get("lang")); ok {
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: string(l), MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode})
		return l
	}
	if c, err := r.Cookie(cookie); err == nil {
		if l, ok := known(c.Value); ok {
			return l
		}
	}
	return lang.OfBrowser(strings.Join(r.Header.Values("Accept-Language"), ","))
}

func known(value string) (lang.Lang, bool) {
	for _, l := range languages {
		if value == string(l.Lang) {
			return l.Lang, true
		}
	}
	return "", false
}

// other is a link to a page in the other language.
type other struct {
	Lang       lang.Lang
	Name, Href string
}

// other leads to this page, or to the overview from one that is not to be asked for again.
func (v *visit) other() (o other) {
	for _, l := range languages {
		if l.Lang != v.lang {
			o.Lang, o.Name = l.Lang, l.Name
		}
	}
	values := url.Values{}
	if v.r.Method == http.MethodGet {
		values = v.r.URL.Query()
	} else {
		o.Href = "./"
	}
	values.Set("lang", string(o.Lang))
	o.Href += "?" + values.Encode()
	return o
}

// say says a text in the language of the request.
func (v *visit) say(t lang.Text, args ...any) string { return portuguese.Say(v.lang, t, args...) }

// words are the functions of templates that depend on the language.
func words(l lang.Lang) template.FuncMap {
	return template.FuncMap{
		"say": func(t lang.Text, args ...any) string { return portuguese.Say(l, t, args...) },
		"markup": func(t lang.Text, args ...any) template.HTML {
			for i, arg := range args {
				if _, ok := arg.(template.HTML); !ok {
					args[i] = template.HTMLEscapeString(fmt.Sprint(arg))
				}
			}
			return template.HTML(portuguese.Say(l, t, args...)) // the text is the page's own
		},
		"count": func(n any, one, more lang.Text) (string, error) {
			i, err := integer(n)
			return portuguese.Count(l, i, one, more), err
		},
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

// why marks up the sentences that say why an event is not done, and the times in them.
func why(l lang.Lang, e operator.Lookup) template.HTML {
	const mark = "\x00" // is in no text of Postgres's
	says := e.Says(string(l), func(t time.Time) string { return mark + t.Format(time.RFC3339Nano) + mark })
	var all strings.Builder
	for i, part := range strings.Split(says, mark) {
		if t, err := time.Parse(time.RFC3339Nano, part); i%2 == 1 && err == nil {
			all.WriteString(string(utc(t)))
			continue
		}
		all.WriteString(template.HTMLEscapeString(part))
	}
	return template.HTML(all.String())
}
