//go:build long && unix

package promises_test

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process that is stopped, not killed, keeps its connections: to Postgres it is a client that thinks. Its
// handler had an hour.
func TestOtherProcessesGoOnWithWhatAStoppedOneHadClaimed(t *testing.T) {
	t.Parallel()
	p := openProcesses(t)
	p.Exec(`insert into fatal values ('3')`)
	stopped := p.startWorker(3)
	for n := range 4 {
		p.storeOne(nth(n, 2))
	}
	for p.nextState() != "halfway "+stopped.name {
	}
	if err := stopped.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p.On(pay)
	p.Inbox.Timeout = 5 * time.Second // in which its attempts are done, however busy the machine is
	p.Start(p.Inbox)
	p.Until(`select count(*) = 4 from idem_events where state = 'done'`)
	t.Logf("the others had done all %s after it was stopped", time.Since(began).Round(100*time.Millisecond))
	p.WantRow("3", "(state, starts, crashes)", "(done,2,1)")
	p.WantEffects(4)
	if !strings.Contains(p.Logged(), "had left sessions in Postgres") {
		t.Errorf("the log does not say that its session was ended:\n%s", p.Logged())
	}
}
