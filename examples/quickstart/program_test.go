package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// program is the built quickstart, and a database that it may be given.
type program struct{ path, database string }

func TestProgram(t *testing.T) {
	t.Parallel()
	p := program{database: idemtest.URL(t)} // without any Postgres, the test ends here
	p.path = filepath.Join(t.TempDir(), "quickstart_"+strings.ToLower(rand.Text()[:8]))
	if out, err := exec.Command("go", "build", "-o", p.path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, test := range map[string]func(*testing.T, program){
		"serves until Ctrl-C":                      servesUntilInterrupt,
		"leaves nothing in a database given":       leavesNothingInTheDatabase,
		"leaves nothing when its reader leaves":    leavesNothingWithoutReader,
		"signs curl lines anew":                    signsAnew,
		"says that its database is wrong":          saysWhatIsWrong,
		"ends on Ctrl-C while Postgres is awaited": endsEarly,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

func servesUntilInterrupt(t *testing.T, p program) {
	r := p.serve(t)
	r.paste(t)
	r.interrupt(t)
}

func leavesNothingInTheDatabase(t *testing.T, p program) {
	p = p.named(t, "_given")
	p.serve(t, "IDEMTEST_DATABASE_URL="+p.database).interrupt(t)
	p.leftNothing(t)
}

// leavesNothingWithoutReader is quickstart | head -1, where head has left before
// anything is written.
func leavesNothingWithoutReader(t *testing.T, p program) {
	p = p.named(t, "_piped")
	stdout, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	defer written.Close()
	stderr := new(bytes.Buffer)
	cmd := exec.Command(p.path)
	cmd.Env = append(os.Environ(), "IDEMTEST_DATABASE_URL="+p.database)
	cmd.Stdout, cmd.Stderr = written, stderr
	_ = cmd.Run()
	if cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(stderr.String(), "quickstart: stopped: nobody reads the output any more") {
		t.Errorf("%v: %s", cmd.ProcessState, stderr)
	}
	p.leftNothing(t)
}

// named is the program by another name. Schemas are named after programs, and
// other tests may have one in the database.
func (p program) named(t *testing.T, suffix string) program {
	t.Helper()
	path := p.path + suffix
	if err := os.Link(p.path, path); err != nil {
		t.Fatal(err)
	}
	return program{path, p.database}
}

// leftNothing checks that the program's schema is gone.
func (p program) leftNothing(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var left int
	err = conn.QueryRow(t.Context(), `select count(*) from pg_namespace where strpos(nspname, $1) > 0`, filepath.Base(p.path)).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d schemas are left, %v", left, err)
	}
}

func signsAnew(t *testing.T, p program) {
	out, err := exec.Command(p.path, "-curl", "http://shop.example/").Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(out), " http://shop.example/webhooks/zeltapay\n"); n != 2 {
		t.Errorf("%d lines for Zelta Pay:\n%s", n, out)
	}
}

func saysWhatIsWrong(t *testing.T, p program) {
	cmd := exec.Command(p.path)
	cmd.Env = append(os.Environ(), "IDEMTEST_DATABASE_URL=postgres://127.0.0.1:1/none")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(string(out), "quickstart: idemtest: IDEMTEST_DATABASE_URL is set but cannot be used") {
		t.Errorf("%v: %s", cmd.ProcessState, out)
	}
}

func endsEarly(t *testing.T, p program) {
	silent, _ := listen(t)
	defer silent.Close()
	cmd := exec.Command(p.path)
	cmd.Env = append(os.Environ(), "IDEMTEST_DATABASE_URL=postgres://"+silent.Addr().String()+"/none?sslmode=disable")
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(stderr.String(), "quickstart: stopped: ") {
		t.Errorf("%v: %s", cmd.ProcessState, stderr)
	}
}

// running is a program that serves.
type running struct {
	cmd    *exec.Cmd
	stdout io.Reader
	alive  *os.File // at its end when the program and all its children are gone
	curl   []string // the lines that it printed
}

func (p program) serve(t *testing.T, env ...string) *running {
	t.Helper()
	alive, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	t.Cleanup(func() { alive.Close() })
	cmd := exec.Command(p.path, "-serve")
	cmd.Env = append(os.Environ(), env...)
	cmd.ExtraFiles = []*os.File{held}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() }) // of no effect when it has ended
	r := &running{cmd: cmd, stdout: stdout, alive: alive}
	r.curl = readCurl(t, stdout)
	return r
}

func readCurl(t *testing.T, stdout io.Reader) (lines []string) {
	t.Helper()
	for in := bufio.NewScanner(stdout); in.Scan(); {
		switch line := in.Text(); {
		case strings.HasPrefix(line, "curl "):
			lines = append(lines, line)
		case strings.HasPrefix(line, "go run "):
			return lines
		}
	}
	t.Fatal("the program ended before it served: see stderr")
	return nil
}

// paste sends the requests of the printed lines and, where there is curl, runs the lines.
func (r *running) paste(t *testing.T) {
	t.Helper()
	const (
		received  = `{"received":true} 200`
		duplicate = `{"received":true,"duplicate":true} 200`
		guessed   = `{"received":false,"reason":"wrong_token"} 401`
		changed   = `{"received":false,"reason":"wrong_signature"} 401`
	)
	var first, second []string
	for _, line := range r.curl[:4] {
		first = append(first, send(t, line))
	}
	for _, line := range r.curl[:4] {
		second = append(second, shell(t, line))
	}
	if diff := cmp.Diff([]string{received, guessed, received, changed}, first); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{duplicate, guessed, duplicate, changed}, second); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{"A-1005      80.00 BRL  paid             80.00 BRL  6\n", "Z-2003      12.34 USD  paid             12.34 USD  3\n"} {
		held, late := shell(t, r.curl[4]), time.After(30*time.Second)
		for !strings.Contains(held, line) { // the workers come after the answer
			select {
			case <-late:
				t.Fatalf("the orders lack %q:\n%s", line, held)
			case <-time.After(20 * time.Millisecond):
			}
			held = shell(t, r.curl[4])
		}
	}
}

// shell runs a printed line as a user does, where there is curl.
func shell(t *testing.T, line string) string {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		return send(t, line)
	}
	out, err := exec.Command("sh", "-c", line).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// send sends the request of a printed line.
func send(t *testing.T, line string) string {
	t.Helper()
	words := split(line)
	r, err := http.NewRequest(http.MethodGet, words[len(words)-1], nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, word := range words {
		switch word {
		case "-H":
			name, value, _ := strings.Cut(words[i+1], ": ")
			r.Header.Set(name, value)
		case "-d":
			r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(words[i+1]))
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body) + " " + answer.Status[:3]
}

// split splits a line into words as a shell does, with quotes around whole
// words only.
func split(line string) (words []string) {
	for line != "" {
		var word string
		if quoted, ok := strings.CutPrefix(line, "'"); ok {
			word, line, _ = strings.Cut(quoted, "'")
			line = strings.TrimPrefix(line, " ")
		} else {
			word, line, _ = strings.Cut(line, " ")
		}
		words = append(words, word)
	}
	return words
}

// interrupt is Ctrl-C, after which all must be gone.
func (r *running) interrupt(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r.stdout); err != nil {
		t.Error(err)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if err := r.alive.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.alive.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a process is left behind: %v", err)
	}
}
