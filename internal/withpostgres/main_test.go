//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/paghooks/paghooks/internal/postgres"
)

// TestMain lets the tests run this binary again, as the program itself or as go run, whose child the program is.
func TestMain(m *testing.M) {
	switch os.Getenv("WITHPOSTGRES_ACT") {
	case "run":
		main()
	case "go run":
		os.Setenv("WITHPOSTGRES_ACT", "run")
		cmd := exec.Command(os.Args[0], os.Args[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			panic(err)
		}
	default:
		os.Exit(m.Run())
	}
}

func TestGivenServerIsUsedAndTheCommandsStatusIsItsOwn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		command string
		status  int
		stdout  string
	}{
		{`echo "$IDEMTEST_DATABASE_URL"; exit 7`, 7, "postgres://db/given\n"},
		{`true`, 0, ""},
		{`kill -KILL $$`, 137, ""},
	} {
		p := play(t, "run", postgres.Variable+"=postgres://db/given", "sh", "-c", test.command)
		if status, stdout := p.end(t); status != test.status || stdout != test.stdout {
			t.Errorf("%s: status %d, %q, want %d, %q", test.command, status, stdout, test.status, test.stdout)
		}
	}
	p := play(t, "run", postgres.Variable+"=postgres://db/given", "no such command")
	if status, _ := p.end(t); status != 1 {
		t.Errorf("a command that does not exist: status %d", status)
	}
}

// program is this binary, as withpostgres.
type program struct {
	*exec.Cmd
	stdout io.Reader
	stderr bytes.Buffer
	family *os.File
}

func play(t *testing.T, act, env string, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	p := &program{Cmd: exec.Command(self, args...)}
	p.Env = []string{"PATH=" + os.Getenv("PATH"), "WITHPOSTGRES_ACT=" + act, env}
	p.Cmd.Stderr = &p.stderr
	p.stdout, err = p.StdoutPipe()
	check(t, err)
	family, inherited, err := os.Pipe()
	check(t, err)
	p.family, p.ExtraFiles = family, []*os.File{inherited}
	check(t, p.Start())
	inherited.Close()
	t.Cleanup(func() { p.Process.Kill(); family.Close() })
	return p
}

// end waits until the program is gone, and each process that it started, and those that these started: all inherit
// one end of a pipe.
func (p *program) end(t *testing.T) (status int, stdout string) {
	t.Helper()
	check(t, p.family.SetReadDeadline(time.Now().Add(time.Minute)))
	if _, err := p.family.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("its processes are still there: %v", err)
	}
	said, err := io.ReadAll(p.stdout)
	check(t, err)
	p.Wait() // its error is the status
	return p.ProcessState.ExitCode(), string(said)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
