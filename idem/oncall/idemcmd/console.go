package idemcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/idem/oncall/console"
	"github.com/paghooks/paghooks/internal/command"
)

// console serves the page to this machine until ctx ends. Nobody can change anything on it, or see a body.
func (p *program) console(ctx context.Context) error {
	if len(p.receivers) == 0 {
		return command.Error(command.Nothing, errors.New("no event is stored yet, so there is nothing to show"))
	}
	if host, _, err := net.SplitHostPort(p.listen); err != nil || !isLocal(host) {
		return command.Usage("-listen is no address of this machine alone: give 127.0.0.1:PORT; the page has no password. From another machine: ssh -L 8070:127.0.0.1:8070 HOST")
	}
	l, err := net.Listen("tcp", p.listen)
	if err != nil {
		return fmt.Errorf("the page cannot be served: %w", err)
	}
	page := console.New(p.receivers...)
	page.Logger = slog.New(slog.NewTextHandler(p.Stderr, nil))
	page.Access = func(*http.Request) (string, console.Access) { return "", console.Access{See: true} }
	defer page.Close()
	server := &http.Server{Handler: toThisMachine(page), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	if err = p.sayAddress("http://" + l.Addr().String() + "/"); err == nil {
		select {
		case <-ctx.Done():
		case err = <-served:
		}
	}
	return errors.Join(err, server.Close())
}

func (p *program) sayAddress(address string) (err error) {
	if p.json {
		return p.printLine(struct {
			URL string `json:"url"`
		}{address})
	}
	_, err = fmt.Fprintf(p.Stdout, "%s shows the events, and changes nothing. Ctrl-C ends it.\n", address)
	return err
}

// toThisMachine passes on what was asked of this machine by its own name: a page of another site in the same browser
// may have a name of its own that leads here.
func toThisMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !isLocal(host) {
			http.Error(w, "This page is for this machine: open it as http://127.0.0.1.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLocal(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
