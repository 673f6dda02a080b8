package idem_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// At every message that Postgres acts on, of every path, the process is
// killed, when that has happened and nobody knows. Then another process gets the
// event.
func TestProcessKilledAnywhereNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	for _, p := range slices.Concat(paths, inboxPaths) {
		if p.cold {
			continue // a new process has no connections anyway
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, p, idemtest.URL(t))
			first := r.victim(0)
			steps := first.run(t)
			r.finish(first.ID)
			if len(steps) == 0 {
				t.Fatal("there is no message to be killed at")
			}
			for _, step := range steps {
				v := r.victim(number(t, step))
				if said := v.run(t); !slices.Equal(said, []string{killed}) {
					t.Fatalf("%s: it should be killed, and said %q", step, said)
				}
				r.takeAgain(v.ID)
				r.finish(v.ID)
				if t.Failed() {
					t.Fatalf("it was killed at %s", step)
				}
			}
		})
	}
}

// victim is a process that takes one event through a path, and kills itself at
// a step. At step 0 it does not.
type victim struct {
	Path, URL, ID, Name string
	Step                int
}

const (
	victimEnv = "IDEM_TEST_VICTIM"
	killed    = "killed" // a victim's last word
)

func (r *rig) victim(step int) victim {
	r.Helper()
	id := r.prepare()
	r.tries++
	v := victim{Path: r.name, URL: r.url, ID: id, Name: rand.Text(), Step: step}
	r.victims = append(r.victims, v.Name)
	return v
}

// run returns the lines that the process said: its last word, or its steps.
func (v victim) run(t *testing.T) (said []string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildThatKillsItself$")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s\n%s\n%s\n%s\n%d", victimEnv, v.Path, v.URL, v.ID, v.Name, v.Step))
	out, err := child.Output()
	said = strings.Split(strings.TrimSpace(string(out)), "\n")
	if v.Step == 0 {
		said = slices.DeleteFunc(said, func(line string) bool { return !strings.HasPrefix(line, "message ") })
	}
	if len(said) == 0 || v.Step == 0 && err != nil {
		t.Fatalf("the process says nothing: %v\n%s", err, out)
	}
	return said
}

// TestChildThatKillsItself is the process of a victim.
func TestChildThatKillsItself(t *testing.T) {
	told := strings.Split(os.Getenv(victimEnv), "\n")
	if len(told) != 5 {
		return
	}
	step, err := strconv.Atoi(told[4])
	if err != nil {
		t.Fatal(err)
	}
	proxy := new(pgproxy.Proxy)
	proxy.Arm(pgproxy.Fault{Step: step, Point: pgproxy.BeforeAnswer, Do: func(uint32) { killMyself(t) }})
	p := pathNamed(t, told[0])
	var outcome idem.Outcome
	pool := openPool(t, told[1], func(c *pgxpool.Config) {
		through(proxy)(c)
		c.ConnConfig.RuntimeParams["application_name"] = told[3]
	})
	outcome, err = p.run(t.Context(), pool, p.source(), told[2])
	if err != nil {
		t.Fatal(err)
	}
	steps, _ := proxy.Disarm()
	if step > 0 {
		t.Fatalf("it was not killed at message %d, of %d: outcome %s", step, len(steps), outcome)
	}
	for _, s := range p.ownOf(steps) {
		if acts(s) {
			fmt.Println(s)
		}
	}
}

// acts reports whether Postgres is another one after a message: the rest of them
// prepares.
func acts(s pgproxy.Step) bool {
	return s.Message == "Execute" || s.Message == "Sync" || s.Message == "Query"
}

// number is a step's, of how it was said.
func number(t *testing.T, step string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(step, "message %d,", &n); err != nil {
		t.Fatalf("%q is no step: %v", step, err)
	}
	return n
}

func pathNamed(t *testing.T, name string) path {
	t.Helper()
	for _, p := range slices.Concat(paths, inboxPaths) {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("there is no path %q", name)
	return path{}
}

// killMyself does not return: nothing is closed, flushed or rolled back.
func killMyself(t *testing.T) {
	fmt.Println(killed)
	process, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Error(err)
	}
	select {}
}
