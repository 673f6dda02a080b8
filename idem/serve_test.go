package idem_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/relay"
)

// served runs Serve with an inbox, and returns where it listens.
func (s *app) served(ctx context.Context, i *idem.Inbox) (url string, ended <-chan error) {
	s.Helper()
	return s.servedWith(ctx, i)
}

// servedWith is served with more parts.
func (s *app) servedWith(ctx context.Context, i *idem.Inbox, more ...idem.Part) (url string, ended <-chan error) {
	s.Helper()
	address, end := make(chan string, 1), make(chan error, 1)
	mux := http.NewServeMux()
	mux.Handle("POST /", i)
	server := &http.Server{Addr: "127.0.0.1:0", Handler: mux, BaseContext: func(l net.Listener) context.Context {
		address <- l.Addr().String()
		return context.Background()
	}}
	go func() { end <- idem.Serve(ctx, server, append(more, i)...) }()
	select {
	case a := <-address:
		if server.IdleTimeout == 0 || server.ReadHeaderTimeout == 0 {
			s.Error("the server has no time-outs")
		}
		return "http://" + a, end
	case err := <-end:
		s.Fatal(err)
		panic("unreachable")
	}
}

func TestServeStopsDeliveriesFirstAndThenWorkers(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		close(entered)
		<-release
		return pay(ctx, tx, n)
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	url, ended := s.served(ctx, s.inbox)
	s.url = url
	s.wantAnswer(paid("e1"), http.StatusOK)
	<-entered
	stop()
	for { // until nobody listens
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "http://"), time.Minute)
		if err != nil {
			break
		}
		conn.Close()
	}
	select {
	case err := <-ended:
		t.Fatalf("it ended with %v while a handler ran", err)
	default:
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.wantState("e1", idem.StateDone)
}

func TestServeEndsWithWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	none := s.newInbox(s.pool)
	none.Workers = 0
	hasty, intolerant, toBroker := s.newProcessor(), s.newProcessor(), relay.New(s.notes, &fakeBroker{}, strings.Repeat("s", 32))
	hasty.Timeout, intolerant.ParkAfter, toBroker.Timeout = 0, 0, 0
	const free = "127.0.0.1:0"
	for why, c := range map[string]struct {
		addr string
		part idem.Part
		want string
	}{
		"the address is taken":              {taken.Addr().String(), s.inbox, "cannot listen"},
		"no workers":                        {free, none, "Workers of the inbox is zero"},
		"no time for a delivery":            {free, hasty, "Timeout of the processor is zero"},
		"an event may not fail even once":   {free, intolerant, "ParkAfter of the processor is zero"},
		"no time for the broker to confirm": {free, toBroker, "Timeout of the relay is zero"},
	} {
		err := idem.Serve(t.Context(), &http.Server{Addr: c.addr}, c.part)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Serve = %v, want %q", why, err, c.want)
		}
	}
}

// worker is a part of an application's own.
type worker func(ctx context.Context) error

func (w worker) Run(ctx context.Context) error { return w(ctx) }

// clientWorker is a worker that sends to the server.
type clientWorker struct{ worker }

func (clientWorker) StopsFirst() bool { return true }

func TestServeStopsWhatSendsThenTheServerThenTheOthers(t *testing.T) {
	t.Parallel()
	address, entered, release := make(chan string, 1), make(chan struct{}), make(chan struct{})
	server := &http.Server{
		Addr:        "127.0.0.1:0",
		BaseContext: func(l net.Listener) context.Context { address <- l.Addr().String(); return context.Background() },
		Handler:     http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(entered); <-release }),
	}
	var mu sync.Mutex
	var order []string
	note := func(s string) { mu.Lock(); defer mu.Unlock(); order = append(order, s) }
	worked := worker(func(ctx context.Context) error { <-ctx.Done(); note("worker"); return context.Cause(ctx) })
	sends := clientWorker{func(ctx context.Context) error { <-ctx.Done(); note("sender"); close(release); return nil }}
	once := worker(func(context.Context) error { note("done early"); return nil })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- idem.Serve(ctx, server, worked, once, sends) }()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		resp, err := http.Post("http://"+<-address, "", nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		note("answered")
	}()
	<-entered
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-answered
	mu.Lock()
	defer mu.Unlock()
	// The worker may end before the client has read the answer.
	got := slices.DeleteFunc(order, func(s string) bool { return s == "answered" })
	if diff := cmp.Diff([]string{"done early", "sender", "worker"}, got); diff != "" || len(order) < 3 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAWorkerThatFailsEndsServeAndNotTheProcess(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct {
		run  worker
		want string
	}{
		"it fails":  {func(context.Context) error { return errors.New("no mail server") }, "no mail server"},
		"it panics": {func(context.Context) error { panic("a mistake") }, "panic: a mistake"},
		"it exits":  {func(context.Context) error { runtime.Goexit(); return nil }, "ended its goroutine"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			stopped := make(chan struct{})
			beside := worker(func(ctx context.Context) error { <-ctx.Done(); close(stopped); return nil })
			err := idem.Serve(t.Context(), &http.Server{Addr: "127.0.0.1:0"}, beside, c.run)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Serve = %v, want %q", err, c.want)
			}
			<-stopped
		})
	}
}
