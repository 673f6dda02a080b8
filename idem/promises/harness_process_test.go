package promises_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/claims"
)

// receiver is a server in a process of its own, which can be killed.
type receiver struct {
	*testing.T
	url string // of the database

	mu      sync.Mutex
	address string
	process *exec.Cmd
}

func (r *receiver) start() {
	child := exec.Command(os.Args[0], "-test.run=^TestChildThatReceives$")
	child.Env = append(os.Environ(), "IDEM_TEST_RECEIVER="+r.url)
	address, err := startChild(child)
	if err != nil {
		r.Error(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.address, r.process = address, child
}

// startChild starts a process and returns the first line that it prints.
func startChild(child *exec.Cmd) (line string, err error) {
	if _, err := child.StdinPipe(); err != nil { // ours until the child is waited for, or we end
		return "", err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return "", err
	}
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		return "", err
	}
	line, err = bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(line), err
}

// endWithParent ends a child's process once its parent's end of the pipe is
// closed, however the parent ends.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func (r *receiver) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.process.Process.Kill(); err != nil {
		r.Error(err)
	}
	_ = r.process.Wait() // killed
}

func (r *receiver) deliverUntilAcknowledged(body string) {
	for {
		r.mu.Lock()
		address := r.address
		r.mu.Unlock()
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, address, strings.NewReader(body))
		if err != nil {
			r.Error(err)
			return
		}
		req.Header.Set("token", "right")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if r.Context().Err() != nil {
			return
		}
		pause()
	}
}

// TestChildThatReceives is the process of a receiver.
func TestChildThatReceives(t *testing.T) {
	url := os.Getenv("IDEM_TEST_RECEIVER")
	if url == "" {
		return
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	source := &notes{}
	idem.Handle(&source.Routes, "paid", pay)
	first := newFirst(pool, source)
	first.Logger = nil
	server := httptest.NewServer(first)
	fmt.Println(server.URL)
	endWithParent()
}

// TestChildThatHandlesForever is the process that is killed.
func TestChildThatHandlesForever(t *testing.T) {
	url := os.Getenv("IDEM_TEST_CHILD")
	if url == "" {
		return
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	source := &notes{}
	idem.Handle(&source.Routes, "paid", func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil {
			return err
		}
		fmt.Println("in the handler")
		endWithParent()
		return nil
	})
	_, err = newFirst(pool, source).Accept(t.Context(), identify([]byte(paid("e1"))))
	t.Fatal("the handler returned: ", err)
}

// processes is an app whose workers are processes of their own. Its states are
// what becomes of events, as they are committed, "done notes//1", and which
// process is to be killed, "halfway <name>".
type processes struct {
	*app
	url     string
	states  chan string
	workers int // that were started
}

const processTables = `
alter table effects add column place bigserial, add column queue text;
create table fatal (event text primary key);
create function tell() returns trigger language plpgsql as $$ begin
	if new.state <> old.state then perform pg_notify(md5(current_schema()), new.state || ' ' || new.event); end if;
	return new;
end $$;
create trigger tell before update on idem_events for each row execute function tell()`

func openProcesses(t *testing.T) *processes {
	t.Helper()
	url := idemtest.URL(t)
	p := &processes{app: openApp(t, openPool(t, url, func(*pgxpool.Config) {})), url: url, states: make(chan string, 10_000)}
	p.Exec(processTables)
	p.Inbox = p.NewInbox(p.Pool)
	conn, err := pgx.ConnectConfig(t.Context(), p.Pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `listen "`+queryOne[string](p.app, `select md5(current_schema())`)+`"`); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer conn.Close(context.Background())
		for n, err := conn.WaitForNotification(t.Context()); err == nil; n, err = conn.WaitForNotification(t.Context()) {
			p.states <- n.Payload
		}
	}()
	return p
}

// next is the next result of an event.
func (p *processes) nextState() string {
	p.Helper()
	select {
	case state := <-p.states:
		return state
	case <-time.After(patience):
		p.Fatal("the workers do nothing")
		panic("unreachable")
	}
}

// nth is event n of those that are spread over so many keys, in the order of
// the provider's time.
func nth(n, keys int) idem.Event {
	id, key := fmt.Sprint(n), fmt.Sprintf("crash-%03d", n%keys)
	return idem.Event{
		ID: id, Type: "paid", Key: key, OccurredAt: time.Unix(1_700_000_000+int64(n), 0),
		Payload: fmt.Appendf(nil, `{"id":%q,"type":"paid","order":%q}`, id, key),
	}
}

func (p *processes) storeOne(e idem.Event) {
	p.Helper()
	if o, err := p.Inbox.Accept(p.Context(), e); o != idem.Pending || err != nil {
		p.Errorf("%s is %s, %v, want pending", e.ID, o, err)
	}
}

// release makes what a dead worker had taken due. That happens by itself when it has
// given no sign of life for a while. It waits until Postgres, too, knows that the worker
// is dead: a claim may be on its way.
func (p *processes) release(w *workerProcess) {
	p.Helper()
	p.untilGone(w)
	p.Exec(fmt.Sprintf(`delete from idem_workers where pid = %d`, w.cmd.Process.Pid))
}

// untilGone waits until Postgres has ended what a dead worker has begun.
func (p *processes) untilGone(w *workerProcess) {
	p.Helper()
	for deadline := time.Now().Add(patience); queryOne[int](p.app, `select count(*) from pg_stat_activity where application_name = $1`, w.name) > 0; pause() {
		if time.Now().After(deadline) {
			p.Fatal("the connections of a dead process are still there")
		}
	}
}

// wantEachOnceInOrder checks that no event has two effects, and that those of a
// key were done in the order of the provider's time.
func (p *processes) wantEachOnceInOrder() { wantEachOnceInOrder(p.app) }

func wantEachOnceInOrder(s *app) {
	s.Helper()
	if n := queryOne[int](s, `select count(*) - count(distinct event) from effects`); n != 0 {
		s.Errorf("%d effects are there again", n)
	}
	if n := queryOne[int](s, `
select count(*) from (
	select event::integer - lag(event::integer) over (partition by queue order by place) as step from effects where event <> 'poison') steps
where step < 0`); n != 0 {
		s.Errorf("%d events were done before an older one of their key", n)
	}
}

// workerProcess is a process that works on the events.
type workerProcess struct {
	name string // of its connections
	cmd  *exec.Cmd
	died chan *workerProcess
}

// start starts a process that gives an event up after so many crashes.
func (p *processes) startWorker(maxCrashes int) *workerProcess {
	p.Helper()
	p.workers++
	w := &workerProcess{
		name: fmt.Sprintf("%s-%d", queryOne[string](p.app, `select md5(current_schema())`), p.workers),
		cmd:  exec.Command(os.Args[0], "-test.run=^TestChildThatWorks$"),
		died: make(chan *workerProcess, 1),
	}
	w.cmd.Env = append(os.Environ(), "IDEM_TEST_WORKER="+p.url, "IDEM_TEST_WORKER_NAME="+w.name, fmt.Sprint("IDEM_TEST_MAX_CRASHES=", maxCrashes))
	if said, err := startChild(w.cmd); err != nil || said != "working" {
		p.Fatalf("the worker said %q, %v", said, err)
	}
	go func() {
		_ = w.cmd.Wait() // killed, or by itself
		w.died <- w
	}()
	p.Cleanup(func() {
		w.kill()
		p.untilGone(w) // its locks would be in the way of what cleans up
	})
	return w
}

// kill does nothing to a process that is dead.
func (w *workerProcess) kill() { _ = w.cmd.Process.Kill() }

// TestChildThatWorks is the process of a worker.
func TestChildThatWorks(t *testing.T) {
	url := os.Getenv("IDEM_TEST_WORKER")
	if url == "" {
		return
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = os.Getenv("IDEM_TEST_WORKER_NAME")
	config.MaxConns = 8 // for two inboxes
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	source := &notes{}
	idem.Handle(&source.Routes, "paid", func(ctx context.Context, tx pgx.Tx, n *note) error {
		if _, err := tx.Exec(ctx, `insert into effects (event, queue) values ($1, $2)`, n.ID, n.Order); err != nil {
			return err
		}
		if n.ID == "poison" {
			os.Exit(1)
		}
		return dieOnce(ctx, pool, n.ID)
	})
	bystander := &otherNotes{}
	idem.Handle(&bystander.Routes, "paid", func(ctx context.Context, tx pgx.Tx, n *note) error {
		_, err := tx.Exec(ctx, `insert into effects (event, queue) values ($1, $2)`, n.ID, n.Order)
		return err
	})
	if _, err := fmt.Sscan(os.Getenv("IDEM_TEST_MAX_CRASHES"), &claims.MaxCrashes); err != nil {
		t.Fatal(err)
	}
	for _, inbox := range []*idem.Inbox{idem.NewInbox(pool, source), idem.NewInbox(pool, bystander)} {
		inbox.Workers, inbox.Logger, inbox.Poll, inbox.Timeout = 3, nil, 10*time.Millisecond, time.Hour
		go func() { _ = inbox.Run(t.Context()) }()
	}
	fmt.Println("working")
	endWithParent()
}

// dieOnce has the parent kill this process, the first time that it works on an
// event that is to be fatal.
func dieOnce(ctx context.Context, pool *pgxpool.Pool, id string) error {
	tag, err := pool.Exec(ctx, `
with gone as (delete from fatal where event = $1 returning event)
select pg_notify(md5(current_schema()), 'halfway ' || current_setting('application_name')) from gone`, id)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	<-ctx.Done()
	return errors.New("it was not killed")
}
