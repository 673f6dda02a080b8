package idemcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// tail passes deliveries on to a program, and prints each with its answer, until ctx ends. Without a program it answers
// itself, once the body is in a file.
func (p *program) tail(ctx context.Context) error {
	t := &tail{program: p}
	switch {
	case len(p.words) > 1 || len(p.words) == 0 && p.keep == "":
		return command.Usage("give the address of the program that gets the deliveries, http://127.0.0.1:8080 for example; or only -keep, and they are answered 200 once they are in files")
	case len(p.words) == 1:
		to, err := url.Parse(p.words[0])
		if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" || to.RawQuery != "" || to.User != nil {
			return command.Usage("the program's address is not one: give it as http://127.0.0.1:8080, without a query; each delivery keeps its own path")
		}
		t.to = to
	}
	if p.keep != "" {
		if err := os.MkdirAll(p.keep, 0o700); err != nil {
			return fmt.Errorf("bodies cannot be kept: %w", err)
		}
	}
	l, err := net.Listen("tcp", p.listen)
	if err != nil {
		return fmt.Errorf("nothing can be received at this address, give another one with -listen: %w", err)
	}
	server := &http.Server{Handler: t.handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	goes := "into " + p.keep + ", and is answered 200: no program gets it"
	if t.to != nil {
		goes = "on to " + t.to.String()
	}
	p.tell("what comes to http://%s goes %s. Ctrl-C ends it.", l.Addr(), goes)
	select {
	case <-ctx.Done():
	case err = <-served:
	}
	return errors.Join(err, server.Close())
}

// tail stands in front of a program.
type tail struct {
	*program
	to *url.URL // nil: it answers itself

	mu sync.Mutex // for lines
}

// delivery is a line of tail.
type delivery struct {
	At       time.Time `json:"at"`
	Method   string    `json:"method"`
	Path     string    `json:"path"` // without the query, which may be a secret
	Type     string    `json:"type,omitempty"`
	ID       string    `json:"id,omitempty"`
	Bytes    int       `json:"bytes"`
	Status   int       `json:"status"` // 502 if no answer came
	Answer   string    `json:"answer,omitempty"`
	Duration float64   `json:"duration_ms"`
	File     string    `json:"file,omitempty"`
}

// forwarded are the headers in which what is in front of a program names the sender.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

const (
	mostOfBody   = 16 << 20 // that is passed on; more is answered 503
	mostOfAnswer = 200      // that is shown
)

func (t *tail) handler() http.Handler {
	pass := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	if t.to != nil {
		pass = &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(t.to)
				r.Out.Host, r.Out.URL.RawQuery = r.In.Host, r.In.URL.RawQuery
				for _, name := range forwarded { // which ReverseProxy takes away: the program may ask them for the sender
					if values, ok := r.In.Header[name]; ok {
						r.Out.Header[name] = values
					}
				}
			},
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
				w.WriteHeader(http.StatusBadGateway)
				_, _ = fmt.Fprintf(w, "no answer, is the program running? %v", err)
			},
			ErrorLog: log.New(io.Discard, "", 0),
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := delivery{At: t.now(), Method: r.Method, Path: r.URL.Path}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostOfBody))
		d.Bytes = len(body)
		d.Type, d.ID = named(body)
		answer := &answered{ResponseWriter: w}
		if err == nil && t.keep != "" {
			d.File, err = t.file(d, body)
		}
		if err != nil {
			http.Error(answer, err.Error(), http.StatusServiceUnavailable) // it comes again
		} else {
			r.Body = io.NopCloser(bytes.NewReader(body))
			pass.ServeHTTP(answer, r)
		}
		d.Status, d.Answer = cmp.Or(answer.status, http.StatusOK), terminal.Clean(answer.begin.String())
		d.Duration = float64(t.now().Sub(d.At).Microseconds()) / 1000
		t.line(d)
	})
}

// named returns the type and the id that a body has at its top, as providers name them: "" for what it lacks.
func named(body []byte) (kind, id string) {
	var event struct {
		Event, Type, ID any
	}
	_ = json.Unmarshal(body, &event)
	kind, _ = event.Event.(string)
	if kind == "" {
		kind, _ = event.Type.(string)
	}
	id, _ = event.ID.(string)
	return kind, id
}

// file keeps a body, on the disk.
func (t *tail) file(d delivery, body []byte) (name string, err error) {
	plain := func(r rune) rune {
		if r < 'a' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && r != '-' && r != '_' || r > 'z' {
			return '-'
		}
		return r
	}
	pattern := d.At.UTC().Format("20060102-150405") + "-" + terminal.Cut(strings.Map(plain, cmp.Or(d.Type, "unnamed")), 60)
	f, err := os.CreateTemp(t.keep, strings.ReplaceAll(pattern, "…", "")+"-*.json") // 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(body)
	return filepath.Base(f.Name()), errors.Join(err, f.Sync(), f.Close())
}

func (t *tail) line(d delivery) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.json {
		_ = t.printLine(d)
		return
	}
	text := fmt.Sprintf("%s %d %.1f ms %s %s %s %s", d.At.In(t.zone).Format(time.TimeOnly), d.Status, d.Duration, d.Method, d.Path, cmp.Or(d.Type, "no type"), cmp.Or(d.ID, "no id"))
	if d.Status != http.StatusOK || d.File != "" {
		text += " " + cmp.Or(d.File, reason(d.Answer))
	}
	_, _ = fmt.Fprintln(t.Stdout, terminal.Clean(text))
}

// reason returns what an answer of this module's says of a refusal, or the answer.
func reason(answer string) string {
	var body struct{ Reason string }
	_ = json.Unmarshal([]byte(answer), &body)
	return cmp.Or(body.Reason, answer)
}

// answered keeps the status of an answer, and its begin.
type answered struct {
	http.ResponseWriter
	status int
	begin  bytes.Buffer
}

func (a *answered) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answered) Write(p []byte) (int, error) {
	a.begin.Write(p[:min(len(p), mostOfAnswer-min(a.begin.Len(), mostOfAnswer))])
	return a.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }
