package brokertest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/relay"
)

// The task of a child process, and its arguments.
const (
	roleVariable     = "BROKERTEST_ROLE"
	addressVariable  = "BROKERTEST_ADDRESS"
	databaseVariable = "BROKERTEST_DATABASE"

	consumeIntoInbox = "consume into an inbox"
	consumeFirst     = "consume and work first"
	relayDeliveries  = "relay deliveries"
)

// Main is m.Run for the TestMain of a module. The tests that kill processes start the
// test's program again: then it opens the queue of that [Queue.Address], and is the process that
// is to be killed.
func Main(m *testing.M, open func(address string) (Queue, error)) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	go func() { // end with the parent, however it ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Fprintln(os.Stderr, "brokertest: ", child(role, open))
	os.Exit(1)
}

// child does its work until the process is killed. It says on stdout how far it is.
func child(role string, open func(address string) (Queue, error)) error {
	q, err := open(os.Getenv(addressVariable))
	if err != nil {
		return err
	}
	if role == relayDeliveries {
		r := relay.New(newProvider(), silent{q.Publisher}, secret)
		r.Timeout = time.Hour
		fmt.Println(httptest.NewServer(r).URL)
		select {}
	}
	ctx := context.Background()
	pool, err := openPool(ctx, os.Getenv(databaseVariable))
	if err != nil {
		return err
	}
	to := idem.NewInbox(pool, newProvider())
	to.WorkFirst = role == consumeFirst
	accept := relay.To(to, secret)
	return q.Consume(ctx, func(ctx context.Context, m broker.Message) error {
		if err := accept(ctx, m); err != nil {
			return err
		}
		fmt.Println(m.ID)
		select {} // until it is killed, before the broker is told
	})
}

// silent is a publisher that does not say that a message is published.
type silent struct{ to broker.Publisher }

func (s silent) Publish(ctx context.Context, m broker.Message) error {
	if err := s.to.Publish(ctx, m); err != nil {
		return err
	}
	fmt.Println(m.ID)
	select {}
}

// process is a child of this one.
type process struct {
	*shop
	cmd   *exec.Cmd
	lines chan string // its lines on stdout; closed when it has ended
}

// start starts a child, which ends with the test at the latest.
func (s *shop) start(role string) *process {
	s.Helper()
	if s.queue.Address == "" {
		s.Skip("this queue cannot be opened in another process")
	}
	p := &process{shop: s, cmd: exec.Command(os.Args[0], "-test.run=^$"), lines: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role, addressVariable+"="+s.queue.Address, databaseVariable+"="+s.database)
	p.cmd.Stderr = os.Stderr
	if _, err := p.cmd.StdinPipe(); err != nil { // closed when we end
		s.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(p.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			p.lines <- strings.TrimSpace(scanner.Text())
		}
		_ = p.cmd.Wait() // killed
	}()
	s.Cleanup(func() { p.kill(); <-ended })
	return p
}

// kill is kill -9.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// line waits for the next line of the child.
func (p *process) line() string {
	p.Helper()
	line := Next(p, p.lines)
	if line == "" {
		p.Fatal("the child process has ended by itself")
	}
	return line
}

// killedConsumer kills a consumer with events in the inbox, before the broker knows.
func killedConsumer(s *shop) {
	child := s.start(consumeIntoInbox)
	inbox := s.newInbox()
	Background(s, inbox.Run)
	killAConsumer(s, child, inbox)
}

// killedFirst kills a consumer with done events, before the broker knows.
func killedFirst(s *shop) {
	killAConsumer(s, s.start(consumeFirst), s.newFirst())
}

func killAConsumer(s *shop, child *process, next idem.Receiver) {
	notes := paid(5, 4)
	s.deliverAll(notes, s.deliver)
	accepted := child.line()
	child.kill()
	s.consume(relay.To(next, secret))
	s.awaitEffects(notes)
	at := slices.IndexFunc(notes, func(n note) bool { return messageID(n) == accepted })
	if at < 0 {
		s.Fatalf("the child accepted %q, which was not published", accepted)
	}
	s.await("the broker to deliver again what it was not told of", func() bool { return s.wasHandled(notes[at]) })
	s.awaitEffects(notes)
	if s.queue.Ordered {
		s.wantOrder()
	}
}

// killedRelay kills a relay that has published events, and has not answered.
func killedRelay(s *shop) {
	child := s.start(relayDeliveries)
	url := child.line()
	notes := paid(8, 2)
	answered := make(chan error, 8)
	for _, n := range notes[:8] {
		go func() {
			_, _, err := s.post(s.Context(), url, n)
			answered <- err
		}()
	}
	for range 3 {
		child.line()
	}
	child.kill()
	for range 8 {
		if err := <-answered; err == nil {
			s.Error("a relay answered before its publisher did")
		}
	}
	inbox := s.newInbox()
	s.consume(relay.To(inbox, secret))
	Background(s, inbox.Run)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
	s.wantStored("done 16")
}
