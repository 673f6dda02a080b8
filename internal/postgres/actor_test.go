package postgres

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestMain lets the tests run this binary again, as a program that does one of
// acts, or on a bare machine: one where nothing but PATH leads to a Postgres.
func TestMain(m *testing.M) {
	if os.Getenv("IDEMTEST_BARE") != "" {
		Bare()
	}
	if act, ok := acts[os.Getenv("IDEMTEST_ACT")]; ok {
		act()
		return
	}
	os.Exit(m.Run())
}

var acts = map[string]func(){
	"return":     func() { fmt.Println(start().dir) },
	"exit":       func() { fmt.Println(start().dir); os.Exit(1) },
	"fatal":      func() { fmt.Println(start().dir); log.Fatal("fatal") },
	"panic":      func() { fmt.Println(start().dir); panic("panic") },
	"stay":       func() { fmt.Println(start().dir); os.Stdin.Read(make([]byte, 1)) },
	"crashed":    func() { c := start(); must(c.Crash(context.Background())); fmt.Println(c.dir) },
	"hasty":      func() { c := new(Cluster); must(c.launch(context.Background(), "1")); fmt.Println(c.dir) },
	"replicated": func() { c := start(); r, err := c.Replica(context.Background()); must(err); fmt.Println(r.dir) },
	"work":       work,
	"docker":     docker,
}

func start() *Cluster {
	c := new(Cluster)
	must(c.Start(context.Background()))
	return c
}

// work uses a server as a program does, and leaves a table behind in it.
func work() {
	s, err := Start(context.Background())
	must(err)
	conn, err := pgx.Connect(context.Background(), s.URL())
	must(err)
	_, err = conn.Exec(context.Background(), "create table orders (id text)")
	must(err)
	fmt.Println(s.Origin())
	if os.Getenv("IDEMTEST_LEAVE") == "" {
		must(s.Close())
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// actor is this binary, running an act or a test.
type actor struct {
	*exec.Cmd
	stdout *bufio.Reader
	stderr bytes.Buffer
	family *os.File
}

// play starts an actor. The environment is PATH and what is given, so that no
// setting of this machine plays along.
func play(t *testing.T, act string, env ...string) *actor {
	t.Helper()
	a := &actor{Cmd: exec.Command(self(t))}
	a.Env = append([]string{"PATH=" + os.Getenv("PATH"), "IDEMTEST_ACT=" + act}, env...)
	a.Stderr = &a.stderr
	_, err := a.StdinPipe() // keeps those that stay, for as long as this process is there
	check(t, err)
	stdout, err := a.StdoutPipe()
	check(t, err)
	a.stdout = bufio.NewReader(stdout)
	family, inherited, err := os.Pipe()
	check(t, err)
	a.family, a.ExtraFiles = family, []*os.File{inherited}
	check(t, a.Start())
	inherited.Close()
	t.Cleanup(func() { a.Process.Kill(); family.Close() })
	return a
}

// line reads one line of what the actor says.
func (a *actor) line(t *testing.T) string {
	t.Helper()
	line, err := a.stdout.ReadString('\n')
	if err != nil {
		a.Wait()
		t.Fatalf("the program ended without a word: %v: %s", err, &a.stderr)
	}
	return line[:len(line)-1]
}

// awaitFamily waits until the actor is gone, and every process that it
// started, and those that they started: they all inherit one end of a pipe.
func (a *actor) awaitFamily(t *testing.T) {
	t.Helper()
	_, err := io.Copy(io.Discard, a.stdout) // ends with the actor: nobody else holds its stdout
	check(t, err)
	a.Wait()
	check(t, a.family.SetReadDeadline(time.Now().Add(time.Minute)))
	if _, err := a.family.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("its processes are still there: %v", err)
	}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	check(t, err)
	return path
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
