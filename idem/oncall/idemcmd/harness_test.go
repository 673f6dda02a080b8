package idemcmd

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/testkit"
)

// note is the event of the provider "notes".
type note = testkit.Note

// shop is an application, and its database, as an operator finds it.
type shop struct {
	*testing.T
	pool  *pgxpool.Pool
	url   string
	inbox *idem.Inbox

	receivers []NewReceiver // what the command is built with
	workers   bool          // whether any are alive, which do nothing
	types     string        // what a person answers; "" is that nobody is there
	pid       uint32        // of the session that holds a lock
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{T: t, pool: testkit.Open(t), workers: true}
	s.url = s.pool.Config().ConnString()
	s.exec(`create table effects (event text not null, scope text not null)`)
	s.inbox = receiver(refuseBad)(s.pool).(*idem.Inbox)
	s.receivers = []NewReceiver{receiver(pay)}
	return s
}

// receiver makes the application's, with a handler of paid events.
func receiver(h idem.Handler[*note]) NewReceiver {
	return func(pool *pgxpool.Pool) idem.Receiver {
		source := testkit.NewSource("notes")
		idem.Handle(&source.Routes, "paid", h)
		inbox := idem.NewInbox(pool, source)
		inbox.Logger = nil
		return inbox
	}
}

var pay, refuseBad = testkit.Pay, testkit.RefuseBad

// accept stores events as "id type order" or "scope id type order".
func (s *shop) accept(lines ...string) {
	s.Helper()
	for _, line := range lines {
		words := strings.Fields(line)
		e := idem.Event{Source: "notes"}
		if len(words) == 4 {
			e.Scope, words = words[0], words[1:]
		}
		e.ID, e.Type, e.Key = words[0], words[1], words[2]
		body, err := json.Marshal(note{ID: e.ID, Type: e.Type, Order: e.Key})
		if err != nil {
			s.Fatal(err)
		}
		e.Payload = body
		if o, err := s.inbox.Accept(s.Context(), e); o != idem.Pending || err != nil {
			s.Fatalf("Accept(%s) = %s, %v", line, o, err)
		}
	}
	if err := s.inbox.Drain(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// badNight stores what an operator finds: a done event, three that failed, one of
// them before two others, and one without a handler.
func (s *shop) badNight() {
	s.Helper()
	s.accept("evt_1 paid pay_1", "bad_2 paid pay_2", "evt_3 paid pay_2", "evt_4 paid pay_2", "bad_5&77 paid pay_5",
		"store-2 bad_6 paid pay_6", "evt_7 refunded pay_7")
	for n, id := range []string{"evt_7", "bad_6", "bad_5&77", "evt_4", "evt_3", "bad_2", "evt_1"} {
		for _, table := range []string{"idem_events", "idem_payloads"} {
			s.exec(fmt.Sprintf(`update %s set received_at = now() - interval '%d days 30 minutes' where event like '%%/%s'`, table, n+1, id))
		}
	}
}

func (s *shop) exec(sql string) {
	s.Helper()
	testkit.Exec(s, s.pool, sql)
}

func (s *shop) text(sql string) (text string) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), `select coalesce((`+sql+`)::text, '')`).Scan(&text); err != nil {
		s.Fatal(err)
	}
	return text
}

// wantText checks what a query says, as SQL writes it.
func (s *shop) wantText(sql, want string) {
	s.Helper()
	if diff := cmp.Diff(want, s.text(sql)); diff != "" {
		s.Errorf("%s (-want +got):\n%s", sql, diff)
	}
}

// prebuilt has the command know no handlers.
func (s *shop) prebuilt() { s.receivers = nil }

// idem runs the command.
func (s *shop) idem(args ...string) (status int, out, complaints string) {
	s.Helper()
	p, o, c := s.program(args...)
	status = p.run(s.Context())
	return status, o.String(), databaseLine.ReplaceAllString(c.String(), "")
}

// databaseLine says which database it is.
var databaseLine = regexp.MustCompile(`(?m)^idem: (DATABASE_URL is not set: )?database "[^"]*" at \S+, user "[^"]*", schema "[^"]*"\n`)

func (s *shop) program(args ...string) (p *program, out, complaints *strings.Builder) {
	out, complaints = new(strings.Builder), new(strings.Builder)
	if len(args) > 0 && args[0] == "requeue" && !slices.Contains(args, "-without-workers") && s.workers {
		testkit.KeepAlive(s, s.pool, "notes")
	}
	if len(args) > 0 {
		args = append(args[:1:1], append([]string{"-database", s.url}, args[1:]...)...)
	}
	p = newProgram(Command{Args: args, Stdin: strings.NewReader(s.types), Stdout: out, Stderr: complaints, Receivers: s.receivers})
	p.zone, p.command.Asks = time.UTC, s.types != ""
	return p, out, complaints
}

// want runs the command and checks all that comes of it.
func (s *shop) want(status int, out, complaints string, args ...string) {
	s.Helper()
	gotStatus, gotOut, gotComplaints := s.idem(args...)
	if gotStatus != status {
		s.Errorf("idem %q: exit status %d, want %d", args, gotStatus, status)
	}
	if diff := cmp.Diff(out, gotOut); diff != "" {
		s.Errorf("idem %q: stdout (-want +got):\n%s", args, diff)
	}
	if diff := cmp.Diff(complaints, gotComplaints); diff != "" {
		s.Errorf("idem %q: stderr (-want +got):\n%s", args, diff)
	}
}

// wantSays runs the command and checks the status, and what it says on stderr.
func (s *shop) wantSays(status int, says string, args ...string) {
	s.Helper()
	got, out, complaints := s.idem(args...)
	if got != status || !strings.Contains(complaints, says) {
		s.Errorf("idem %q: exit status %d, want %d\nstdout: %s\nstderr: %s\nwant it to say %q", args, got, status, out, complaints, says)
	}
}

var update = flag.Bool("update", false, "write the golden files")

var (
	dateTime = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)
	jsonTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	seconds  = regexp.MustCompile(`_seconds":\d+`)
)

// golden compares with a file of testdata. Times are left out.
func (s *shop) golden(name, got string) {
	s.Helper()
	got = dateTime.ReplaceAllString(got, "2026-11-20 10:00:00")
	got = jsonTime.ReplaceAllString(got, "2026-11-20T10:00:00Z")
	got = seconds.ReplaceAllString(got, `_seconds":0`)
	got = databaseLine.ReplaceAllString(got, `idem: database "shop" at 127.0.0.1:5432, user "shop", schema "public"`+"\n")
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			s.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		s.Errorf("%s (-want +got), or run go test with -update:\n%s", name, diff)
	}
}

func TestOutputIsAsPeopleAndProgramsReadIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		status int
	}{
		"stats.txt":           {[]string{"stats"}, command.Done},
		"stats.json":          {[]string{"stats", "-json"}, command.Done},
		"list.txt":            {[]string{"list"}, command.Done},
		"list.json":           {[]string{"list", "-json", "-state", "parked,pending"}, command.Done},
		"show.txt":            {[]string{"show", "bad_5&77", "evt_1"}, command.Done},
		"show.json":           {[]string{"show", "-json", "notes/store-2/bad_6"}, command.Done},
		"show_payload.txt":    {[]string{"show", "-payload", "-as", "ana", "bad_2"}, command.Done},
		"show_payload.json":   {[]string{"show", "-payload", "-as", "ana", "-json", "bad_2"}, command.Done},
		"show_entity.txt":     {[]string{"show", "-entity", "pay_1", "-entity", "pay_2"}, command.Done},
		"show_entity.json":    {[]string{"show", "-entity", "pay_2", "-json"}, command.Done},
		"blocked.txt":         {[]string{"blocked"}, command.Done},
		"blocked.json":        {[]string{"blocked", "-json"}, command.Done},
		"requeue_dry_run.txt": {[]string{"requeue", "-dry-run"}, command.Done},
		"replay_dry_run.txt":  {[]string{"replay", "-dry-run"}, command.Done},
		"replay_dry_run.json": {[]string{"replay", "-dry-run", "-json"}, command.Done},
		"replay.txt":          {[]string{"replay", "-yes"}, command.Done},
		"replay.json":         {[]string{"replay", "-yes", "-json"}, command.Done},
		"discard.txt":         {[]string{"discard", "-reason", "test orders", "-yes", "-type", "paid"}, command.Done},
		"erase.txt":           {[]string{"erase", "-reason", "request 17", "-yes", "-entity", "pay_1", "bad_2", "-discard"}, command.Done},
		"erase.json":          {[]string{"erase", "-reason", "request 17", "-yes", "-json", "evt_1"}, command.Done},
		"erase_left.txt":      {[]string{"erase", "-reason", "request 17", "-yes", "-entity", "pay_1", "-entity", "pay_2"}, command.Failed},
		"erase_dry_run.txt":   {[]string{"erase", "-reason", "request 17", "-dry-run", "-entity", "pay_1", "-entity", "pay_2"}, command.Failed},
		"help_erase.txt":      {[]string{"help", "erase"}, command.Done},
		"prune_dry_run.txt":   {[]string{"prune", "-retention", "36h", "-allow-processing-twice", "-dry-run"}, command.Done},
		"stop.txt":            {[]string{"stop", "-as", "ana", "1"}, command.Done},
		"stop.json":           {[]string{"stop", "-as", "ana", "-json", "1"}, command.Done},
		"migrate.txt":         {[]string{"migrate"}, command.Done},
		"help.txt":            {[]string{"help"}, command.Done},
		"help_replay.txt":     {[]string{"help", "replay"}, command.Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.badNight()
			if strings.HasPrefix(name, "prune") {
				s.idem("prune") // which sees what is there
				s.exec(`update idem_prunes set ran_at = ran_at - interval '1 day'`)
			}
			if c.args[0] == "stop" {
				s.action("replay", "now() + interval '1 hour'", "notes//bad_2", "notes//bad_5&77")
			}
			p, out, complaints := s.program(c.args...)
			if c.args[0] == "help" {
				p.Args = c.args
			}
			if status := p.run(t.Context()); status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			got := out.String()
			if complaints.Len() > 0 {
				got += "-- stderr --\n" + complaints.String()
			}
			s.golden(name, got)
		})
	}
}

// What a stranger has sent must not move an operator's cursor, or color it.
func TestATerminalIsSafeFromWhatStrangersSend(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("bad_\x1b[31m paid pay_\x1b]0;owned\x07", "evt_2 paid pay_\x1b]0;owned\x07")
	s.exec(`update idem_events set last_error = E'line\nnext \x1b[2J' where state = 'parked'`)
	for _, args := range [][]string{{"list"}, {"blocked"}, {"show", "-payload", "bad_\x1b[31m"}, {"requeue", "-dry-run"}} {
		status, out, complaints := s.idem(args...)
		if status != command.Done || out == "" {
			t.Errorf("idem %q: exit status %d, %s", args, status, complaints)
		}
		if text := out + complaints; strings.ContainsAny(text, "\x1b\x07") {
			t.Errorf("idem %q prints control characters: %q", args, text)
		}
	}
}

func TestAFindingSaysWhatWasFoundAndWhatToDo(t *testing.T) {
	t.Parallel()
	s := &shop{T: t}
	p, out, _ := s.program()
	for _, f := range []doctor.Finding{
		{
			Check: "durability", Severity: doctor.Error, Problem: "a crash of the machine can lose or corrupt everything",
			Evidence: "fsync is off", Remedy: "alter system set fsync = on; select pg_reload_conf()",
		},
		{Check: "parked", Severity: doctor.Warning, Source: "asaas", Problem: "events are parked", Evidence: "3 events", Remedy: "see why"},
		{Check: "durability", Severity: doctor.Info, Problem: "commits do not wait for the disk by default", Evidence: "synchronous_commit is off"},
	} {
		if err := p.printFinding(f); err != nil {
			t.Fatal(err)
		}
	}
	s.golden("doctor.txt", out.String())
}
