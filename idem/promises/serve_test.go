package promises_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/provider"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestServeStopsDeliveriesFirstAndThenWorkers(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		close(entered)
		<-release
		return pay(ctx, tx, n)
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	url, ended := s.Served(ctx, s.Inbox)
	s.URL = url
	s.WantAnswer(paid("e1"), http.StatusOK)
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
	s.WantState("e1", idem.StateDone)
}

func TestServeEndsWithWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	none := s.NewInbox(s.Pool)
	none.Workers = 0
	hasty, intolerant, toBroker := s.NewFirst(), s.NewFirst(), relay.New(s.Notes, &testkit.Broker{}, strings.Repeat("s", 32))
	hasty.Timeout, intolerant.AnswerWithin, toBroker.Timeout = 0, 0, 0
	const free = "127.0.0.1:0"
	for why, c := range map[string]struct {
		addr string
		part idem.Part
		want string
	}{
		"the address is taken":              {taken.Addr().String(), s.Inbox, "cannot listen"},
		"no workers":                        {free, none, "Workers of the inbox is zero"},
		"no time for an attempt":            {free, hasty, "Timeout of the inbox is zero"},
		"no time for a first try":           {free, intolerant, "AnswerWithin of the inbox is zero"},
		"no time for the broker to confirm": {free, toBroker, "Timeout of the relay is zero"},
	} {
		err := idem.Serve(t.Context(), &http.Server{Addr: c.addr}, c.part)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Serve = %v, want %q", why, err, c.want)
		}
	}
}

func TestServeStopsWhatSendsThenTheServerThenTheOthers(t *testing.T) {
	t.Parallel()
	address, early, entered, release := make(chan string, 1), make(chan struct{}), make(chan struct{}), make(chan struct{})
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
	once := worker(func(context.Context) error { note("done early"); close(early); return nil })
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
	<-early
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

// The log says which it is: nothing is given, or it is not of the kind that verifies.
func TestServeWarnsAtTheStartWhyNothingCanBeVerified(t *testing.T) {
	t.Parallel()
	var key, none provider.Dispatcher
	key.Setup(&provider.Definition{Source: "bank", Scheme: provider.RSA{}}, "not a key")
	none.Setup(&provider.Definition{Source: "bank", Scheme: provider.RSA{}}, "")
	for name, c := range map[string]struct {
		err  error
		want string // "" for no warning
	}{
		"configured":     {nil, ""},
		"another source": {errors.New("the vault is closed"), "all are answered 503: the vault is closed"},
		"no key":         {none.Configured(), "all are answered 503: the public keys given (1) are empty: is the environment variable set?"},
		"a bad key":      {key.Configured(), "all are answered 503: the public keys given (1) are no RSA keys as PEM"},
	} {
		s := newInboxApp(t)
		i := idem.NewInbox(s.Pool, unverified{s.Notes, c.err})
		i.Logger = s.Logger()
		ctx, stop := context.WithCancel(t.Context())
		_, ended := s.Served(ctx, i)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		log := s.Logged()
		if warned := strings.Contains(log, "cannot be verified"); warned != (c.want != "") || !strings.Contains(log, c.want) {
			t.Errorf("%s: want %q in the log:\n%s", name, c.want, log)
		}
	}
}

// With the default of four connections, an inbox's three workers and an outbox's one
// would hold them all.
func TestADeliveryIsAnsweredWhileAllWorkersOfAnInboxAndAnOutboxAreBusy(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	entered, release := make(chan struct{}, 10), make(chan struct{})
	messages := outbox.New(s.Pool, "shop", blockedBroker{entered, release})
	messages.Logger = s.Logger()
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "emits" {
			return messages.Emit(ctx, broker.Message{Type: "order.paid", Body: []byte(n.ID)})
		}
		entered <- struct{}{}
		<-release
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	url, ended := s.Served(ctx, s.Inbox, messages)
	s.URL = url
	s.WantAnswer(paid("emits"), http.StatusOK)
	<-entered // the outbox's worker
	for n := range s.Inbox.Workers {
		s.WantAnswer(fmt.Sprintf(`{"id":"busy-%d","type":"paid","order":"o%[1]d"}`, n), http.StatusOK)
		<-entered
	}
	s.WantAnswer(`{"id":"late","type":"paid","order":"late"}`, http.StatusOK)
	close(release)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if s.Inbox.Workers != 2 || messages.Workers != 1 {
		t.Errorf("there are %d and %d workers, want 2 and 1, which leaves a connection", s.Inbox.Workers, messages.Workers)
	}
	if strings.Contains(s.Logged(), "pool_max_conns") {
		t.Errorf("the log warns:\n%s", s.Logged())
	}
}

func TestServeWarnsOfWorkersThatLeaveNoConnection(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.Inbox.Workers = 7
	ctx, stop := context.WithCancel(t.Context())
	_, ended := s.Served(ctx, s.Inbox)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if log := s.Logged(); s.Inbox.Workers != 7 || !strings.Contains(log, "set pool_max_conns higher than workers") || !strings.Contains(log, "workers=7 connections=4") {
		t.Errorf("there are %d workers, and the log says:\n%s", s.Inbox.Workers, log)
	}
}

// Of two providers' inboxes none has all the workers.
func TestInboxesThatShareAPoolShareItsConnections(t *testing.T) {
	t.Parallel()
	s := openInboxApp(t, poolOf(t, 8))
	other := s.NewInbox(s.Pool)
	ctx, stop := context.WithCancel(t.Context())
	_, ended := s.Served(ctx, s.Inbox, other)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := []int{min(s.Inbox.Workers, other.Workers), max(s.Inbox.Workers, other.Workers)}; got[0] != 3 || got[1] != 4 {
		t.Errorf("they have %v workers, want 3 and 4 of 8 connections", got)
	}
}

func TestTheLogSaysThatTheFirstEventIsDone(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	for _, id := range []string{"e1", "e1", "e2"} {
		s.WantAnswer(paid(id), http.StatusOK)
	}
	var said []string
	for line := range strings.Lines(s.Logged()) {
		if strings.Contains(line, "level=INFO") {
			said = append(said, line)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], "the first of this process") || !strings.Contains(said[0], "id=e1") {
		t.Errorf("the log says of two events that are done: %q", said)
	}
}

// Whoever has put the cause right asks the log whether it works now.
func TestTheLogSaysThatAFailedEventIsDoneAtLast(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	broken := true
	s.On(func(context.Context, pgx.Tx, *note) error {
		if broken {
			return errors.New("a mistake")
		}
		return nil
	})
	s.Inbox.Backoff = func(int) time.Duration { return 24 * time.Hour }
	s.Store(letter("first", "o0", 0))
	broken = false
	s.Drain(1)
	for id, again := range map[string]func(id string){
		"workers": func(string) { s.Exec(`update idem_payloads set due_at = now()`); s.Drain(1) },
		"requeued": func(id string) {
			if n, err := s.Inbox.Requeue(t.Context(), idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{id}}); n != 1 || err != nil {
				t.Errorf("Requeue = %d, %v", n, err)
			}
			s.Drain(1)
		},
		"replayed": func(id string) {
			s.WantReplayed(idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{id}}, idem.Replayed{Done: 1})
		},
	} {
		s.Store(letter(id, id, 0))
		broken = true
		s.Drain(1)
		broken = false
		again(id)
	}
	var said []string
	for line := range strings.Lines(s.Logged()) {
		if strings.Contains(line, `level=INFO msg="webhook done at last: it had failed, or waited for one that had`) {
			said = append(said, line)
		}
	}
	if len(said) != 3 {
		t.Errorf("of three events that had failed the log says %q", said)
	}
}

// worker is a part of an application's own.
type worker func(ctx context.Context) error

func (w worker) Run(ctx context.Context) error { return w(ctx) }

// clientWorker is a worker that sends to the server.
type clientWorker struct{ worker }

func (clientWorker) StopsFirst() bool { return true }

// unverified is a source of which a setting is missing, or not.
type unverified struct {
	*notes
	err error
}

func (u unverified) Configured() error { return u.err }

// A blocked broker is one whose Publish returns when it is told to.
type blockedBroker struct{ entered, release chan struct{} }

func (b blockedBroker) Publish(context.Context, broker.Message) error {
	b.entered <- struct{}{}
	<-b.release
	return nil
}
