//go:build long

package idemcmd

import (
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/internal/command"
)

// A machine is paused, or the network loses all packets, while the command asks its first questions.
func TestADatabaseThatStopsAnsweringDoesNotHangTheCommand(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.prebuilt()
	for _, c := range []struct{ at, verb string }{{"which has never been asked", "stats"}, {"current_database()", "discard"}, {"with recursive sources", "list"}} {
		u, err := url.Parse(s.url)
		if err != nil {
			t.Fatal(err)
		}
		host, port, err := net.SplitHostPort(s.freezeAt(c.at))
		if err != nil {
			t.Fatal(err)
		}
		values := u.Query()
		values.Set("host", host)
		values.Set("port", port)
		u.RawQuery = values.Encode()
		p, _, complaints := s.program(c.verb)
		if c.verb != "stats" {
			p.patience = 300 * time.Millisecond
		}
		p.Args = []string{c.verb, "-database", u.String()}
		if c.verb == "discard" {
			p.Args = append(p.Args, "-yes", "-reason", "x", "bad_2")
		}
		status := p.run(t.Context())
		if frozen := c.verb != "stats"; frozen != (status == command.Failed) || frozen != strings.Contains(complaints.String(), "deadline exceeded") {
			t.Errorf("a server that stops at %q: exit status %d, %s", c.at, status, complaints)
		}
	}
	s.wantText(`select state from idem_events where event = 'notes//bad_2'`, "parked")
}
