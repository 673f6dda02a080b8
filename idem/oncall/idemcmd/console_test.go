package idemcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/command"
)

func TestThePageOfTheCommandShowsAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.prebuilt()
	line, stop := s.page("console", "-listen", "127.0.0.1:0")
	address, _, _ := strings.Cut(line, " ")

	ask := func(method, path, host string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(url.Values{"source": {"notes"}, "id": {"bad_2"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Host = host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	for _, c := range []struct {
		reason, method, path, host string
		status                     int
		has, hasNot                string
	}{
		{"the events", "GET", "events?source=notes&state=parked", "", 200, "bad_2", "<button>Replay"},
		{"one event", "GET", "event?source=notes&id=bad_2", "localhost", 200, "bad_2", "Show all of it"},
		{"its body", "POST", "reveal", "", 403, "You may not do this", ""},
		{"a replay", "POST", "act", "", 403, "You may not do this", ""},
		{"by a name of somebody else's that leads here", "GET", "events", "shop.attacker.example:8070", 421, "open it as http://127.0.0.1", "bad_2"},
	} {
		status, body := ask(c.method, c.path, c.host)
		if status != c.status || !strings.Contains(body, c.has) || c.hasNot != "" && strings.Contains(body, c.hasNot) {
			t.Errorf("%s: status %d, %s", c.reason, status, body)
		}
	}
	stop()

	line, stop = s.page("console", "-listen", "127.0.0.1:0", "-json")
	var object struct{ URL string }
	if err := json.Unmarshal([]byte(line), &object); err != nil || !strings.HasPrefix(object.URL, "http://127.0.0.1:") {
		t.Errorf("as JSON it prints %s, %v", line, err)
	}
	stop()
}

// page runs the command, and returns its first line and what ends it.
func (s *shop) page(args ...string) (line string, stop func()) {
	s.Helper()
	p, _, complaints := s.program(args...)
	out, in := io.Pipe()
	p.Stdout = in
	ctx, cancel := context.WithCancel(s.Context())
	s.Cleanup(cancel)
	ended := make(chan int, 1)
	go func() {
		status := p.run(ctx)
		_ = in.Close()
		ended <- status
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.Fatal(err, complaints)
	}
	return line, func() {
		s.Helper()
		cancel()
		if status := <-ended; status != command.Done {
			s.Errorf("it ends with status %d, %s", status, complaints)
		}
	}
}

func TestThePageOfTheCommandIsServedToThisMachineAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	for _, listen := range []string{"0.0.0.0:0", ":8070", "192.0.2.1:80", "shop.example:80", "127.0.0.1"} {
		s.wantSays(command.Misused, "-listen is no address of this machine alone", "console", "-listen", listen)
	}
	empty := newShop(t)
	empty.prebuilt()
	empty.wantSays(command.Nothing, "no event is stored yet", "console")
}
