package idemcmd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A second signal does not wait for a handler.
func TestASecondCtrlCEndsTheCommandAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	replay := s.startReplay(2, "bad_2")
	replay.awaitLine("in the handler of bad_2")
	replay.signal(os.Interrupt)
	replay.awaitLine("signaled")
	ended := make(chan int)
	go func() {
		status, _ := replay.wait()
		ended <- status
	}()
	again := time.NewTicker(10 * time.Millisecond) // until the command, too, has noticed the first one
	defer again.Stop()
	for running := true; running; {
		select {
		case status := <-ended:
			running = false
			if status != -1 {
				t.Errorf("exit status %d, want the end by a signal", status)
			}
		case <-again.C:
			_ = replay.process.Process.Signal(os.Interrupt) // it may have ended
		}
	}
	s.wantText(`select count(*) from effects where event = 'bad_2'`, "0")
	s.wantText(`select state from idem_events where event = 'notes//bad_2'`, "parked")
}

// replaying is the command in a process of its own.
type replaying struct {
	*testing.T
	process    *exec.Cmd
	in         io.Closer
	out        *bufio.Reader
	complaints strings.Builder
}

// startReplay starts a replay that waits in the handler of an event, as its number
// says, until it is released.
func (s *shop) startReplay(waitsAt int, ids ...string) *replaying {
	s.Helper()
	r := &replaying{T: s.T, process: exec.Command(os.Args[0])}
	r.process.Env = append(os.Environ(), "IDEMCMD_TEST_URL="+s.url, fmt.Sprint("IDEMCMD_TEST_WAITS=_", waitsAt), "IDEMCMD_TEST_IDS="+strings.Join(ids, " "))
	r.process.Stderr = &r.complaints
	in, err := r.process.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	out, err := r.process.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	r.in, r.out = in, bufio.NewReader(out)
	if err := r.process.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = r.process.Process.Kill() })
	return r
}

func (r *replaying) awaitLine(want string) {
	r.Helper()
	line, err := r.out.ReadString('\n')
	if strings.TrimSpace(line) != want {
		r.Fatalf("the process says %q, %v, want %q\n%s", line, err, want, &r.complaints)
	}
}

func (r *replaying) signal(s os.Signal) {
	r.Helper()
	if err := r.process.Process.Signal(s); err != nil {
		r.Fatal(err)
	}
}

func (r *replaying) release() { _ = r.in.Close() }

func (r *replaying) wait() (status int, complaints string) {
	_, _ = io.Copy(io.Discard, r.out)
	_ = r.process.Wait() // the status says it
	return r.process.ProcessState.ExitCode(), r.complaints.String()
}

// TestMain lets the test's program be the process that replays.
func TestMain(m *testing.M) {
	if url := os.Getenv("IDEMCMD_TEST_URL"); url != "" {
		replayAsAProcess(url)
		return
	}
	os.Exit(m.Run())
}

// replayAsAProcess is a program of a user's.
func replayAsAProcess(url string) {
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, os.Interrupt)
	go func() {
		<-signals
		signal.Stop(signals)
		fmt.Println("signaled")
	}()
	handler := func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil {
			return err
		}
		if strings.HasSuffix(n.ID, os.Getenv("IDEMCMD_TEST_WAITS")) {
			fmt.Println("in the handler of " + n.ID)
			_, _ = io.Copy(io.Discard, os.Stdin) // until it is released, or the parent ends
		}
		return nil
	}
	os.Args = append([]string{"idem", "replay", "-yes", "-as", "ana", "-database", url}, strings.Fields(os.Getenv("IDEMCMD_TEST_IDS"))...)
	Main(receiver(handler))
}
