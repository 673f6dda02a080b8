package canary_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/canary"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/port"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestCanaryProvesThatPostgresTakesWritesAndStoresNothing(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	s.Exec(`create table writes (n serial); create sequence marks;
		create function count_mark() returns trigger language plpgsql as $$ begin perform nextval('marks'); return new; end $$;
		create trigger count_mark before insert on idem_events for each row execute function count_mark()`)
	s.On(func(context.Context, pgx.Tx, *testkit.Note) error { panic("a handler of the application ran") })
	s.First.KeepPayloads = true
	s.OpenInbox()
	server := httptest.NewServer(s.Inbox)
	t.Cleanup(server.Close)
	for mode, url := range map[string]string{"work first": s.URL, "answer first": server.URL} {
		if err := newCanary(url, "right").Send(t.Context()); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
	if n := testkit.QueryOne[int](s, s.Pool, `select last_value from marks where is_called`); n != 2 { // sequences are not rolled back
		t.Errorf("%d records were written and rolled back, want 2", n)
	}
	s.WantContents([]string{})
	if seen := s.Outcomes(); len(seen) != 0 {
		t.Errorf("canaries are counted as deliveries: %v", seen)
	}
}

func TestCanarySaysWhatIsWrongAndNoSecret(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	closed, err := pgxpool.New(t.Context(), "postgres://u@"+strings.TrimPrefix(port.Gone(t), "http://")+"/db?connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closed.Close)
	withoutPostgres := testkit.NewFirst(closed, s.Notes)
	withoutPostgres.Logger = nil
	readOnly := testkit.OpenPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on" })
	cannotWrite := testkit.NewFirst(readOnly, s.Notes)
	cannotWrite.Logger = nil
	for reason, c := range map[string]struct {
		address, token, want string
	}{
		"a wrong token":            {s.URL, "secret-1", "refused it with 401 (wrong_token): give the canary the token"},
		"no token":                 {s.URL, "", "refused it with 401 (missing_token)"},
		"a program without token":  {s.URL, "none", "has no token or secret to verify with"},
		"nobody listens":           {port.Gone(t), "right", "there was no answer: see whether the application runs"},
		"Postgres is unavailable":  {answering(t, withoutPostgres.ServeHTTP), "right", "could not write to Postgres"},
		"Postgres takes no writes": {answering(t, cannotWrite.ServeHTTP), "right", "could not write to Postgres"},
		"a proxy's page":           {answering(t, says(502, "\n<html>Bad Gateway</html>")), "right", "answered with 502 and a page of HTML"},
		"a portal's page":          {answering(t, says(200, "<!doctype html>")), "right", "answered with 200 and a page of HTML"},
		"another application":      {answering(t, says(404, "no")), "right", "answered with 404, as no receiver of paghooks does"},
		"takes it for real":        {answering(t, says(200, `{"received":true}`)), "right", "answered with 200, as a real event"},
		"an older version":         {answering(t, says(503, `{"received":false,"dry_run":"unhandled"}`)), "right", "does not know canaries"},
		"a failure":                {answering(t, says(503, `{"received":false}`)), "right", "answered with 503, as no receiver"},
		"a refusal with a secret":  {answering(t, says(401, `{"reason":"secret-1"}`)), "secret-1", "(for a reason that is none of paghooks's)"},
		"a broken redirect": {answering(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://[::1/"+r.URL.RequestURI())
			w.WriteHeader(302)
		}), "right", "the redirect 302, which providers do not follow"},
		"not whole": {answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(503)
		}), "right", "there was no answer"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			address := strings.Replace(c.address, "http://", "http://user:secret-2@", 1) + "/hooks?key=secret-3"
			canary := newCanary(address, c.token)
			err := canary.Send(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), "canary: notes: ") || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("Send = %v, want %q", err, c.want)
			}
			if said := fmt.Sprintf("%v %+v %#v", err, canary, canary); strings.Contains(said, "secret-") {
				t.Errorf("a secret is printed: %s", said)
			}
			if last := canary.Last(); last.Err == nil || last.Failures != 1 || last.Failing() || last.At.IsZero() {
				t.Errorf("the last result is %+v", last)
			}
		})
	}
}

func TestCanaryFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	to := answering(t, func(http.ResponseWriter, *http.Request) { followed.Store(true) })
	from := answering(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) })
	err := newCanary(from, "right").Send(t.Context())
	if err == nil || !strings.Contains(err.Error(), "answered with the redirect 307, which providers do not follow") || followed.Load() {
		t.Errorf("Send = %v; followed: %t", err, followed.Load())
	}
}

func TestCanaryDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hangs := answering(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	c := newCanary(hangs, "right")
	c.Timeout = 50 * time.Millisecond
	if err := c.Send(t.Context()); err == nil || !strings.Contains(err.Error(), "there was no answer within 50ms") {
		t.Errorf("Send = %v", err)
	}
}

// A connection that is open already would hide that DNS or a certificate is broken.
func TestCanaryMakesANewConnectionEachTime(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(says(503, `{"received":false,"dry_run":"done"}`))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := newCanary(server.URL, "right")
	for range 3 {
		if err := c.Send(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections for 3 deliveries", n)
	}
}

func TestCanaryThatIsNoDryRunIsAnUnknownEvent(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	dropping := answering(t, func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del(idem.DryRunHeader)
		s.First.ServeHTTP(w, r)
	})
	c := newCanary(dropping, "right")
	for range 3 {
		if err := c.Send(t.Context()); err == nil || !strings.Contains(err.Error(), "a proxy drops the header Idem-Dry-Run") {
			t.Errorf("Send = %v", err)
		}
	}
	s.WantState("canary-1", idem.StateUnhandled)
	if n := testkit.QueryOne[int](s, s.Pool, `select count(*) from idem_events`); n != 1 {
		t.Errorf("%d events are stored of 3 deliveries, want 1", n)
	}
	s.WantReplayed(idem.Filter{}, idem.Replayed{Unhandled: 1})
	got, err := s.First.DryReplay(t.Context(), idem.Filter{})
	if want := (idem.Replayed{Unhandled: 1}); testkit.Counted(got) != testkit.Counted(want) || err != nil {
		t.Errorf("DryReplay = %+v, %v, want %+v", got, err, want)
	}
	if c.Last().Failures != 3 {
		t.Errorf("the last result is %+v", c.Last())
	}
}

func TestCanaryTellsThatItFailsAndThatItHasRecovered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var results []string
		c := newCanary("https://shop.example/hooks", "right")
		c.Transport = &scriptedWay{answers: []string{fine, "", fine, "", "", "", "{}", fine, fine}}
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		start := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		want := []string{
			"0s 0 false", "30s 1 false", "1m0s 0 false", "1m30s 1 false", "2m0s 2 true", "2m5s 3 true", "2m10s 4 true",
			"2m15s 0 false", "2m45s 0 false",
		}
		for range want {
			synctest.Wait()
			r := c.Last()
			results = append(results, fmt.Sprintf("%s %d %t", r.At.Sub(start), r.Failures, r.Failing()))
			if len(results) == len(want) {
				stop()
			}
			if time.Sleep(c.Every / 6); !r.Failing() {
				time.Sleep(c.Every - c.Every/6)
			}
		}
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		if diff := cmp.Diff(want, results); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		var lines []string
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(line, "level=")
			line, _, _ = strings.Cut(line, " canary=")
			lines = append(lines, line)
		}
		fails := `ERROR msg="webhook canary fails: events of the provider will fail, too"`
		once := `WARN msg="webhook canary failed once"`
		if diff := cmp.Diff([]string{once, once, fails, fails, `INFO msg="webhook canary has recovered"`}, lines); diff != "" {
			t.Errorf("the log (-want +got):\n%s\n%s", diff, &log)
		}
	})
}

func TestCanaryThatIsStoppedHasNotFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCanary("https://shop.example/hooks", "right")
		c.Transport = &scriptedWay{answers: []string{fine, "hangs"}}
		ctx, stop := context.WithTimeout(t.Context(), 35*time.Second)
		defer stop()
		if err := c.Run(ctx); err != nil || c.Last().Err != nil || c.Last().At.IsZero() {
			t.Errorf("Run = %v, the last result is %+v", err, c.Last())
		}
		if err := c.Send(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Send = %v", err)
		}
	})
}

func TestCanaryThatMakesNoSenseDoesNotRun(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct {
		address string
		every   time.Duration
		want    string
	}{
		"the variable is not set": {"", time.Second, "is empty"},
		"no scheme":               {"shop.example/hooks?secret-1", time.Second, "is not one that events can be sent to"},
		"another scheme":          {"ftp://secret-1@shop.example", time.Second, "is not one that events can be sent to"},
		"no URL":                  {"http://secret-1:x y/%zz", time.Second, "is not one that events can be sent to"},
		"no pause":                {"https://shop.example", 0, "Every or Timeout"},
	} {
		canary := newCanary(c.address, "right")
		canary.Every = c.every
		for call, err := range map[string]error{"Run": canary.Run(t.Context()), "Send": canary.Send(t.Context())} {
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret-1") {
				t.Errorf("%s: %s = %v, want %q", reason, call, err, c.want)
			}
		}
	}
}

func TestServeRunsACanaryAndStopsItFirst(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	mux := http.NewServeMux()
	var deliveries atomic.Int32
	second := make(chan struct{})
	mux.HandleFunc("POST /hooks", func(w http.ResponseWriter, r *http.Request) {
		if deliveries.Add(1) == 2 {
			close(second)
		}
		s.Inbox.ServeHTTP(w, r)
	})
	address := port.Address(t)
	c := newCanary("http://"+address+"/hooks", "right")
	c.Every = time.Millisecond
	mux.Handle("GET /health/webhooks", s.NewHealth(s.Inbox, c))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- idem.Serve(ctx, &http.Server{Addr: address, Handler: mux}, s.Inbox, c) }()
	select {
	case <-second: // so that the first has its result
		if last := c.Last(); last.At.IsZero() || last.Err != nil {
			t.Errorf("the last result is %+v", last)
		}
	case err := <-ended:
		t.Fatalf("Serve = %v", err)
	case <-time.After(testkit.Patience):
		t.Fatal("no canary was delivered")
	}
	resp, err := http.Get("http://" + address + "/health/webhooks")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("health is %d", resp.StatusCode)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := idem.Serve(t.Context(), &http.Server{Addr: "127.0.0.1:0"}, s.Inbox, newCanary("", "right")); err == nil || !strings.Contains(err.Error(), "address of notes is empty") {
		t.Errorf("Serve = %v", err)
	}
}

// Serve runs the canary beside deliveries: its goroutine must not end them all.
func TestCanaryWithAPanickingTransportFailsAndSaysNoSecret(t *testing.T) {
	t.Parallel()
	c := newCanary("https://shop.example/webhooks?key=hidden", "right-secret")
	c.Transport = brokenTransport{}
	err := c.Send(t.Context())
	if err == nil || !strings.Contains(err.Error(), "Transport") || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "right-secret") {
		t.Error(err)
	}
	if n := c.Last().Failures; n != 1 {
		t.Errorf("%d failures, want 1", n)
	}
}

// newCanary is a canary of the provider that these tests invent.
func newCanary(address, token string) *canary.Canary {
	c := canary.New("notes", address, []byte(canaryBody), func(h http.Header, _ []byte) { h.Set("token", token) })
	c.Logger = nil
	return c
}

const canaryBody = `{"id":"canary-1","type":"` + canary.EventType + `"}`

func answering(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// scriptedWay answers as it is told, one answer after the other, the last one
// from then on.
type scriptedWay struct {
	sent    atomic.Int32
	answers []string // "" is no answer
}

func (s *scriptedWay) RoundTrip(r *http.Request) (*http.Response, error) {
	n := min(int(s.sent.Add(1)), len(s.answers)) - 1
	switch body := s.answers[n]; body {
	case "":
		return nil, errors.New("no route to host")
	case "hangs":
		<-r.Context().Done()
		return nil, r.Context().Err()
	default:
		return &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// brokenTransport panics, with what it was given.
type brokenTransport struct{}

func (brokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	panic("no route to " + r.URL.String() + " with " + r.Header.Get("token"))
}

const fine = `{"received":false,"dry_run":"done"}`
