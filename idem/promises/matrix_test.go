package promises_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
	"github.com/paghooks/paghooks/internal/testkit"
)

// The connection breaks at the messages of COMMIT of every path: before one is sent, after
// Postgres has acted on it and before its answer, after its answer. Then the event comes
// again. There is one effect, and no 200 for what is not stored. With the tag long it breaks
// on every path, and then at every message.
func TestConnectionCutAnywhereNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	cutAt(t, commits)
}

// At the same messages the process is killed, when Postgres has acted on them and nobody
// knows. Then another process gets the event.
func TestProcessKilledAnywhereNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	killAt(t, commits)
}

// commits are the messages of a path with which Postgres commits, or its last one.
func commits[S any](all []S) []S {
	some := slices.DeleteFunc(slices.Clone(all), func(step S) bool { return !committing.MatchString(fmt.Sprint(step)) })
	if len(some) == 0 {
		return all[len(all)-1:]
	}
	return some
}

var committing = regexp.MustCompile(`(Execute|Sync|Query) of "commit"$`)

func cutAt(t *testing.T, choose func([]pgproxy.Step) []pgproxy.Step) {
	for _, p := range triedPaths() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, p, idemtest.URL(t))
			for _, step := range choose(r.steps()) {
				for _, point := range pgproxy.Points {
					r.fail(step, pgproxy.Fault{Step: step.Number, Point: point})
				}
			}
		})
	}
}

func killAt(t *testing.T, choose func([]string) []string) {
	for _, p := range triedPaths() {
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
			for _, step := range choose(steps) {
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

// triedPaths are the paths of most events, or all with the tag long.
func triedPaths() map[string]path {
	all := map[string]path{}
	for _, p := range slices.Concat(paths, inboxPaths) {
		all[p.name] = p
	}
	return testkit.Named(all, "a new event", "a first try", "an arrival", "work", "a replay")
}

func newRig(t *testing.T, p path, url string) *rig {
	t.Helper()
	r := &rig{path: p, url: url, source: p.source()}
	r.app = openApp(t, openPool(t, url, func(*pgxpool.Config) {}))
	r.reopen()
	return r
}

// rig is a path in front of a database: trials happen on pool, through the
// proxy, and what they led to is looked at on the app's own pool.
type rig struct {
	*app
	path
	url     string // of the database
	source  *notes
	proxy   *pgproxy.Proxy
	pool    *pgxpool.Pool
	trials  int
	tries   int      // of the last trial
	victims []string // the application_name of processes that were killed
}

// reopen begins a trial with a proxy and a pool of its own: what an earlier one
// still does in the background is not counted.
func (r *rig) reopen() {
	r.Helper()
	if r.pool != nil {
		go r.pool.Close()
	}
	r.proxy = new(pgproxy.Proxy)
	r.pool = openPool(r.TB, r.url, through(r.proxy))
}

// prepare makes the next event of the path, and returns its id.
func (r *rig) prepare() string {
	r.Helper()
	r.trials++
	r.tries = 0
	id := fmt.Sprintf("e%d", r.trials)
	r.before(r.app, id)
	return id
}

// take runs the path with an event, and checks what is stored if the provider
// may forget it.
func (r *rig) take(id string) idem.Outcome {
	r.Helper()
	if r.byWorkers && r.tries > 0 {
		r.letTimePass()
	}
	r.tries++
	outcome, err := r.run(r.Context(), r.pool, r.source, id)
	if err != nil {
		r.Fatal(err)
	}
	if r.byWorkers {
		r.wantAcknowledged(id, outcome)
		return outcome
	}
	if got := r.stored(id); outcome.Acknowledged() && got != r.want {
		r.Errorf("outcome %s, and stored is %+v, want %+v", outcome, got, r.want)
	}
	return outcome
}

// takeAgain runs the path as often as a provider might have to. A fault leaves
// at most one broken connection to stumble over.
func (r *rig) takeAgain(id string) {
	r.Helper()
	var outcome idem.Outcome
	for range 4 {
		if outcome = r.take(id); outcome.Acknowledged() {
			return
		}
	}
	r.Errorf("the event is still %s", outcome)
}

// finish delivers an event with a handler that works, as if all were well
// again: by then it is done, and once.
func (r *rig) finish(id string) {
	r.Helper()
	if r.byWorkers {
		r.finishByWorkers(id)
		return
	}
	p := newFirst(r.app.Pool, path{handler: pay}.source())
	p.Logger, p.KeepPayloads = nil, r.want == doneWhole
	want := done
	if p.KeepPayloads {
		want = doneWhole
	}
	if r.want == unhandled {
		want = unhandled
	}
	for range 2 {
		outcome, err := p.Accept(r.Context(), identify([]byte(paid(id))))
		if got := r.stored(id); err != nil || got != want {
			r.Errorf("in the end the event is %s, %v, and stored is %+v, want %+v", outcome, err, got, want)
		}
	}
	if n := queryOne[int](r.app, `select count(*) - count(distinct event) from effects`); n > 0 {
		r.Errorf("in the end there are %d effects twice", n)
	}
}

func (r *rig) stored(id string) (k kept) {
	r.Helper()
	const look = `select coalesce((select state from idem_events where event = 'notes//' || $1), ''),
		(select count(*) from effects where event = $1),
		exists (select event from idem_payloads where event = 'notes//' || $1 union all select event from idem_archive where event = 'notes//' || $1),
		exists (select from idem_events where event = 'notes//' || $1 and claimed_by is not null)`
	if err := r.app.Pool.QueryRow(r.Context(), look, id).Scan(&k.State, &k.Effects, &k.Body, &k.Claimed); err != nil {
		r.Fatal(err)
	}
	return k
}

// connect takes another event through the path: connections are open
// afterwards, and statements prepared. If the path is cold, there are neither.
func (r *rig) connect() {
	r.Helper()
	if r.cold {
		r.reopen()
		return
	}
	id := r.prepare()
	r.takeAgain(id)
	r.finish(id) // else the next worker goes on with it, or it holds the events after it
}

// steps are the messages of one run without a fault, those of other rows apart.
func (r *rig) steps() []pgproxy.Step {
	r.Helper()
	steps := r.record()
	for again := r.record(); !slices.Equal(again, steps); again = r.record() { // a sign of life came in between
		steps = again
	}
	return steps
}

func (r *rig) record() []pgproxy.Step {
	r.Helper()
	r.connect()
	id := r.prepare()
	before := r.stored(id)
	r.proxy.Arm(pgproxy.Fault{})
	r.take(id)
	steps, _ := r.proxy.Disarm()
	if got := r.stored(id); r.later && got != r.want {
		r.Fatalf("without a fault stored is %+v, want %+v", got, r.want)
	}
	r.finish(id)
	if before.Effects < r.want.Effects && !slices.ContainsFunc(steps, isCommit) {
		r.Fatalf("the effect is there, and no message has committed it: %v", steps)
	}
	own := r.ownOf(steps)
	if len(own) == 0 {
		r.Fatalf("no message is the path's own: %v", steps)
	}
	return own
}

// fail takes an event through the path while a fault happens, and again
// afterwards. A trial with other messages, because a sign of life came in between, is made again.
func (r *rig) fail(step pgproxy.Step, f pgproxy.Fault) {
	r.Helper()
	for tries := 1; ; tries++ {
		steps, hit := r.failOnce(step, f)
		if hit {
			return
		}
		if tries == 20 { // a slow trial has a sign in it more often than not
			r.Fatalf("%s: the fault happened at no such message of %v", step, steps)
		}
	}
}

func (r *rig) failOnce(step pgproxy.Step, f pgproxy.Fault) (steps []pgproxy.Step, hit bool) {
	r.Helper()
	r.connect()
	id := r.prepare()
	r.proxy.Arm(f)
	outcome := r.take(id)
	steps, fired := r.proxy.Disarm()
	hit = fired && steps[f.Step-1] == step
	if hit && !r.byWorkers && isCommit(step) && f.Point == pgproxy.BeforeAnswer {
		r.wantLostAnswer(id, outcome)
	}
	if !outcome.Acknowledged() {
		r.takeAgain(id)
	}
	r.finish(id)
	if r.Failed() {
		r.Fatalf("%s, fault %s: first the outcome was %s", step, f.Point, outcome)
	}
	return steps, hit
}

// wantLostAnswer: the work is done, which is found out on another connection, or when the event comes again.
func (r *rig) wantLostAnswer(id string, outcome idem.Outcome) {
	r.Helper()
	if outcome.Acknowledged() && outcome != idem.Done || r.stored(id) != r.want {
		r.Errorf("the answer to COMMIT is lost: outcome %s, stored is %+v, want %+v, and done or no 200", outcome, r.stored(id), r.want)
	}
	if again := r.take(id); again != idem.Duplicate {
		r.Errorf("the answer to COMMIT was lost: at the redelivery the outcome is %s, want %s", again, idem.Duplicate)
	}
}

func (r *rig) victim(step int) victim {
	r.Helper()
	id := r.prepare()
	r.tries++
	v := victim{Path: r.name, URL: r.url, ID: id, Name: rand.Text(), Step: step}
	r.victims = append(r.victims, v.Name)
	return v
}

// letTimePass ends leases and waits. What a process that was killed has begun is
// over by then, and its locks are gone.
func (r *rig) letTimePass() {
	r.Helper()
	r.Until(`select not exists (select from pg_stat_activity where application_name = any ($1))`, r.victims)
	r.Exec(`delete from idem_workers`)
	r.Exec(`update idem_payloads set due_at = now() where due_at > now()`)
}

// ids are those of a trial's events, in the order in which they are to be done.
func (r *rig) ids(id string) []string {
	all := []string{id}
	for n := range r.behind {
		all = append(all, behindIt(id, n+1))
	}
	return all
}

// wantAcknowledged checks what is stored if the provider may forget the events.
func (r *rig) wantAcknowledged(id string, outcome idem.Outcome) {
	r.Helper()
	got := r.stored(id)
	left := got == pending || got == claimed || got == parked && outcome == idem.Parked // a connection that breaks under a replay's handler counts
	if outcome.Acknowledged() && got != r.want && !(r.later && left) {
		r.Errorf("outcome %s, and stored is %+v, want %+v", outcome, got, r.want)
	}
	for _, next := range r.ids(id)[1:] {
		got := r.stored(next)
		left := got == pending || r.later && (got == claimed || got == done || r.free && got == r.want)
		if outcome.Acknowledged() && !left {
			r.Errorf("outcome %s, and behind it stored is %+v, want %+v", outcome, got, pending)
		}
	}
	r.wantOrder(id)
}

// wantOrder: no event has its effect before one that it is behind of.
func (r *rig) wantOrder(id string) {
	r.Helper()
	before := 1
	for _, id := range r.ids(id) {
		effects := r.stored(id).Effects
		if effects > before && !r.free {
			r.Errorf("event %s has %d effects, and what comes before it %d", id, effects, before)
		}
		before = effects
	}
}

// finishByWorkers has workers finish what is stored, as if all were well again.
// Nothing of it is lost when the provider asks, and all is done, and once.
func (r *rig) finishByWorkers(id string) {
	r.Helper()
	r.workOff(id)
	r.redeliver(id)
	r.workOff(id)
	for _, id := range r.ids(id) {
		want := done
		if r.want == discarded {
			want = discarded
		}
		got := r.stored(id)
		if r.want == doneWhole {
			got.Body = false // of a worker that keeps it, or of one that does not
		}
		if got != want {
			r.Errorf("in the end stored is %+v of event %s, want %+v", got, id, want)
		}
	}
	r.wantBlameless(id)
}

// workOff has other workers do all that can be done, once they have waited. An
// event that may have crashed a process twice waits until it is alone in this one.
func (r *rig) workOff(id string) {
	r.Helper()
	i := quietInbox(r.app.Pool, path{handler: pay}.source())
	for deadline := time.Now().Add(patience); r.left(id); {
		r.letTimePass()
		if err := i.Drain(r.Context()); err != nil {
			r.Fatal(err)
		}
		r.wantOrder(id)
		if time.Now().After(deadline) {
			r.Fatalf("workers leave event %s: %+v", id, r.stored(id))
		}
	}
}

// left reports whether workers have something to do.
func (r *rig) left(id string) bool {
	r.Helper()
	for _, id := range r.ids(id) {
		switch got := r.stored(id); {
		case got.State == idem.StatePending:
			return true
		case got == parked && !r.free: // what is behind it waits
			return false
		}
	}
	return false
}

func (r *rig) redeliver(id string) {
	r.Helper()
	i := quietInbox(r.app.Pool, path{handler: pay}.source())
	for _, id := range r.ids(id) {
		want := idem.Duplicate
		if got := r.stored(id); got == unhandled || got == parked || got.State == "" { // the last one was answered 503, or not at all
			want = idem.Pending
		}
		if o, err := i.Accept(r.Context(), identify([]byte(paid(id)))); o != want {
			r.Errorf("in the end event %s comes again, and is %s, %v, want %s", id, o, err, want)
		}
	}
}

// wantBlameless: what a fault costs an event counts once, as a failure or as a
// crash.
func (r *rig) wantBlameless(id string) {
	r.Helper()
	attempts := queryOne[int](r.app, `select attempts from idem_events where event = 'notes//' || $1`, id)
	if r.later && attempts > r.tries {
		r.Errorf("event %s has %d failed attempts, and was tried %d times", id, attempts, r.tries)
	}
	crashes := queryOne[int](r.app, `select crashes from idem_events where event = 'notes//' || $1`, id)
	if crashes > r.crashes+1 {
		r.Errorf("event %s has %d crashes, want %d at most", id, crashes, r.crashes+1)
	}
}

// through leads a pool of one connection through a proxy.
func through(proxy *pgproxy.Proxy) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) {
		proxy.Through(c)
		c.MaxConns = 1
		c.ConnConfig.Tracer = new(acquires)
	}
}

// victim is a process that takes one event through a path, and kills itself at
// a step. At step 0 it does not.
type victim struct {
	Path, URL, ID, Name string
	Step                int
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

const (
	victimEnv = "IDEM_TEST_VICTIM"
	killed    = "killed" // a victim's last word
)

var (
	done      = kept{State: idem.StateDone, Effects: 1}
	doneWhole = kept{State: idem.StateDone, Effects: 1, Body: true}
	parked    = kept{State: idem.StateParked, Body: true}
	unhandled = kept{State: idem.StateUnhandled, Body: true}
)

// kept is an event as the database has it.
type kept struct {
	State   idem.State
	Effects int
	Body    bool // its payload
	Claimed bool // by a worker
}

func isCommit(s pgproxy.Step) bool { return s.Statement == "commit" && s.Answered }

// number is a step's, of how it was said.
func number(t *testing.T, step string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(step, "message %d,", &n); err != nil {
		t.Fatalf("%q is no step: %v", step, err)
	}
	return n
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

// acts reports whether Postgres is another one after a message: the rest of them
// prepares.
func acts(s pgproxy.Step) bool {
	return s.Message == "Execute" || s.Message == "Sync" || s.Message == "Query"
}

const claimBegins = "begin isolation level read committed"
