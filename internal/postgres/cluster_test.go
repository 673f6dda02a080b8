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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// started starts a cluster for the duration of the test.
func started(t *testing.T, c *Cluster) *Cluster {
	t.Helper()
	check(t, c.Start(t.Context()))
	t.Cleanup(func() { check(t, c.Close()) })
	return c
}

// halfway commits one order, and leaves another in an open transaction.
func halfway(t *testing.T, c *Cluster, round int) pgx.Tx {
	t.Helper()
	conn := dial(t, c.URL())
	_, err := conn.Exec(t.Context(), "create table if not exists orders (id int)")
	check(t, err)
	_, err = conn.Exec(t.Context(), "insert into orders values ($1)", round)
	check(t, err)
	tx, err := conn.Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), "insert into orders values (0)")
	check(t, err)
	return tx
}

func ask(t *testing.T, c *Cluster, query string) (answer string) {
	t.Helper()
	check(t, dial(t, c.URL()).QueryRow(t.Context(), query).Scan(&answer))
	return answer
}

func dial(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	check(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func TestClusterSaysWhyItDoesNotStart(t *testing.T) {
	for _, test := range []struct{ name, initdb, postgres, want string }{
		{"initdb fails", "echo no room >&2; exit 1", "", "is not made: no room"},
		{"postgres fails", `mkdir -p "$2"`, "echo no memory >&2; exit 1", "is not up: no memory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bin := openDir(t)
			script(t, bin, "initdb", test.initdb)
			script(t, bin, "postgres", test.postgres)
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			c := new(Cluster)
			err := c.Start(t.Context())
			if err == nil || IsAbsent(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
				t.Errorf("%s is still there", c.dir)
			}
		})
	}
}

func TestCrashNeedsARunningCluster(t *testing.T) {
	t.Parallel()
	if err := new(Cluster).Crash(t.Context()); err == nil {
		t.Error("no error")
	}
	if err := new(Cluster).Kill(t.Context()); err == nil {
		t.Error("no error")
	}
}

func TestPostgresIsNotBentByTheEnvironment(t *testing.T) {
	for _, name := range []string{"PGPORT", "PGOPTIONS", "PGDATA", "LC_ALL"} {
		t.Setenv(name, "nonsense")
	}
	got := strings.Join(environment(), "\n")
	if strings.Contains(got, "nonsense") || !strings.HasSuffix(got, "\nLC_ALL=C") {
		t.Error(cmp.Diff("LC_ALL=C", got))
	}
}

// TestMain lets the tests run this binary again, as a program that does one of
// acts, or on a bare machine: one where nothing but PATH leads to a Postgres. It may
// have a cache of its own.
func TestMain(m *testing.M) {
	if cache := os.Getenv("IDEMTEST_CACHE"); cache != "" {
		cacheDir = func() (string, error) { return cache, nil }
	}
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
	"return":  func() { fmt.Println(start().dir) },
	"exit":    func() { fmt.Println(start().dir); os.Exit(1) },
	"fatal":   func() { fmt.Println(start().dir); log.Fatal("fatal") },
	"panic":   func() { fmt.Println(start().dir); panic("panic") },
	"stay":    func() { fmt.Println(start().dir); os.Stdin.Read(make([]byte, 1)) },
	"crashed": func() { c := start(); must(c.Crash(context.Background())); fmt.Println(c.dir) },
	"hasty": func() {
		c := new(Cluster)
		must(c.launch(context.Background()))
		must(c.leash.send("init"))
		fmt.Println(c.dir)
	},
	"copying":    copying,
	"replicated": func() { c := start(); r, err := c.Replica(context.Background()); must(err); fmt.Println(r.dir) },
	"work":       work,
	"live":       live,
	"docker":     docker,
}

func start() *Cluster {
	c := new(Cluster)
	must(c.Start(context.Background()))
	return c
}

// work uses a server as a program does, and leaves a table behind in it.
func work() {
	s, err := Connect(context.Background())
	must(err)
	dsn, drop, err := s.Schema(context.Background(), "work")
	must(err)
	conn, err := pgx.Connect(context.Background(), dsn)
	must(err)
	_, err = conn.Exec(context.Background(), "create table orders (id text)")
	must(err)
	fmt.Println(s.Origin())
	if os.Getenv("IDEMTEST_LEAVE") == "" {
		must(drop())
		must(s.Close())
	}
}

// live uses a server for as long as stdin is open.
func live() {
	s, err := Connect(context.Background())
	must(err)
	var database string
	must(s.admin.QueryRow(context.Background(), "select current_database()").Scan(&database))
	fmt.Println(database)
	os.Stdin.Read(make([]byte, 1))
}

// copying ends before a cluster that was copied is started.
func copying() {
	must(start().Close()) // there is data to copy from now on
	c := new(Cluster)
	must(c.launch(context.Background()))
	must(initializedBy(c.bin).copyTo(c.dir))
	fmt.Println(c.dir)
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

// pair starts a cluster with one order, and its replica.
func pair(t *testing.T, primary *Cluster) (_, replica *Cluster) {
	t.Helper()
	started(t, primary)
	run(t, primary, "create table orders as select 0 as id")
	replica, err := primary.Replica(t.Context())
	check(t, err)
	t.Cleanup(func() { check(t, replica.Close()) })
	check(t, replica.CatchUp(t.Context(), primary))
	return primary, replica
}

func run(t *testing.T, c *Cluster, sql string) {
	t.Helper()
	_, err := dial(t, c.URL()).Exec(t.Context(), sql)
	check(t, err)
}

func orders(t *testing.T, c *Cluster) string {
	t.Helper()
	return ask(t, c, "select string_agg(id::text, ',' order by id) from orders")
}
