package idemcmd

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/internal/command"
)

func TestWrongUsageExits2AndSaysWhatIsRight(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	for _, c := range []struct {
		why  string
		args []string
		says string
	}{
		{"no verb", nil, "give a verb: idem help VERB has all about one"},
		{"unknown verb", []string{"lsit"}, `there is no verb "lsit": idem help prints them`},
		{"help on one", []string{"help"}, "there is no verb"}, // -database follows it
		{"a verb's flag before it", []string{"-type", "paid", "list"}, "the verb comes first, then -type"},
		{"unknown flag", []string{"stats", "-reason", "x"}, "flag provided but not defined: -reason: idem help stats prints the flags"},
		{"too many words", []string{"stats", "asaas"}, `"asaas" is too much: idem help stats prints what it takes`},
		{"show without an id", []string{"show"}, "show what? give the id of an event, or -entity"},
		{"no state", []string{"list", "-state", "failed"}, `"failed" is none of pending, unhandled and parked; idem show finds events in any state`},
		{"no time", []string{"list", "-since", "yesterday"}, "nor how long ago, such as 2h or 3d"},
		{"negative limit", []string{"list", "-limit", "-1"}, "-limit is -1: give 0 for all"},
		{"an age that was meant in days", []string{"prune", "-yes", "-retention", "45m"}, "-retention is 45 min, and an event that a provider delivers again after that is processed a second time"},
		{"an age that was meant in days, of a dry run", []string{"prune", "-dry-run", "-retention", "30d"}, "-allow-processing-twice if that is meant"},
		{"no age", []string{"prune", "-retention", "0"}, "it is no time such as 45d, 12h or 5s"},
		{"no number", []string{"audit", "x"}, "give the number of one action"},
	} {
		s.wantSays(command.Misused, c.says, c.args...)
	}
	s.wantText(`select count(*) from idem_events where state in ('parked', 'unhandled')`, "4")
}

func TestWhatMatchesNothingExits3AndSaysWhatWasMeant(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	for _, c := range []struct {
		why  string
		args []string
		says string
	}{
		{"no event of that type", []string{"list", "-type", "nothing"}, "idem: no event matched\n"},
		{"a payment's id", []string{"list", "pay_2"}, "If it is a payment's, not an event's: -entity pay_2"},
		{"an id that is not there", []string{"list", "bad_5"}, "see whether the id is complete: one with an & in it needs quotes"},
		{"show of nothing", []string{"show", "nothing"}, "If it is a payment's, not an event's: idem show -entity nothing"},
		{"no such source", []string{"stats", "-source", "asaas"}, `there is no source "asaas", but notes`},
		{"an account without it", []string{"show", "bad_6", "-account", "store-3"}, "no event matched"},
		{"no such action", []string{"audit", "77"}, "there is no action 77"},
	} {
		s.wantSays(command.Nothing, c.says, c.args...)
	}
	quiet := newShop(t)
	quiet.wantSays(command.Nothing, "idem: no entity is blocked\n", "blocked")
	quiet.wantSays(command.Nothing, "idem: no event matched: states pending, unhandled, parked\n", "list")
	quiet.wantSays(command.Nothing, "idem: no event matched: states parked\n", "list", "-state", "parked")
	quiet.wantSays(command.Nothing, "idem: no event matched: states unhandled, parked\n", "requeue")
	quiet.prebuilt()
	quiet.want(command.Done, "No event is stored.\n", "", "stats")
}

func TestErrorsThatHaveOneUsualCauseSayWhatToDo(t *testing.T) {
	t.Parallel()
	for code, says := range map[string]string{
		"25006": "give the address of the primary",
		"42501": "idem doctor says which rights are missing",
		"42703": "idem doctor says what the tables lack",
		"42P01": "idem doctor says what the tables lack",
		"42P05": "add default_query_exec_mode=exec to the database's address",
		"26000": "add default_query_exec_mode=exec to the database's address",
	} {
		if text := explain(fmt.Errorf("idem: counting: %w", &pgconn.PgError{Code: code})); !strings.Contains(text, says) {
			t.Errorf("%s: %s", code, text)
		}
	}
}

func TestADatabaseThatCannotBeUsedIsSaidWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for address, c := range map[string]struct {
		status int
		says   string
	}{
		"nonsense hunter2":                      {command.Misused, "the address of the database is not understood"},
		"postgres://u:hunter2@127.0.0.1:1/shop": {command.Failed, "the database does not answer"},
	} {
		s := &shop{T: t, url: address}
		status, out, complaints := s.idem("stats")
		if status != c.status || out != "" || !strings.Contains(complaints, c.says) || strings.Contains(complaints, "hunter2") {
			t.Errorf("%s: exit status %d, %q", address, status, complaints)
		}
	}
	s := newShop(t)
	there := s.url
	u, err := url.Parse(there)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/no_such_database"
	s.url = u.String()
	s.wantSays(command.Failed, "the database answers, and refuses the user, the password, the database or a parameter of this address", "stats")
	s.url = there
	s.exec(`drop table idem_payloads, idem_events cascade`)
	s.wantSays(command.Failed, "the tables are missing", "stats")
	s.prebuilt()
	s.wantSays(command.Failed, "the tables are not there: run idem migrate", "stats")
}

// Not parallel: it sets the environment.
func TestTheEnvironmentNamesTheDatabase(t *testing.T) {
	s := newShop(t)
	s.badNight()
	p, out, complaints := s.program()
	p.Args = []string{"stats"}
	t.Setenv("DATABASE_URL", s.url)
	if status := p.run(t.Context()); status != command.Done || !strings.HasPrefix(out.String(), "SOURCE  WORKERS") || complaints.Len() > 0 {
		t.Errorf("exit status %d, %s, %s", status, out, complaints)
	}
	config := s.pool.Config().ConnConfig
	t.Setenv("DATABASE_URL", "")
	t.Setenv("PGHOST", config.Host)
	t.Setenv("PGPORT", fmt.Sprint(config.Port))
	t.Setenv("PGUSER", config.User)
	t.Setenv("PGDATABASE", config.Database)
	t.Setenv("PGPASSWORD", config.Password)
	t.Setenv("PGOPTIONS", config.RuntimeParams["options"])
	p, out, complaints = s.program()
	p.Args = []string{"stats"}
	says := fmt.Sprintf("idem: DATABASE_URL is not set: database %q at %s:%d, user %q, schema %q\n", config.Database, config.Host, config.Port, config.User, s.text(`select current_schema()`))
	if status := p.run(t.Context()); status != command.Done || !strings.HasPrefix(out.String(), "SOURCE  WORKERS") || complaints.String() != says {
		t.Errorf("exit status %d, %s, %s", status, out, complaints)
	}
}

func TestAnOutputThatBreaksIsAnError(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	for _, args := range [][]string{{"list"}, {"list", "-json"}, {"stats"}, {"stats", "-json"}, {"blocked"}, {"show", "bad_2"}} {
		p, _, complaints := s.program(args...)
		p.Stdout = writer{iotest.ErrReader(os.ErrClosed)}
		if status := p.run(t.Context()); status != command.Failed || !strings.Contains(complaints.String(), os.ErrClosed.Error()) {
			t.Errorf("idem %q: exit status %d, %s", args, status, complaints)
		}
	}
}

// The disk is full, or nobody reads any more: what was done is done.
func TestAnActionWhoseResultCannotBePrintedSaysThatItIsDone(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"discard", "-yes", "-reason", "x", "bad_2"}, {"discard", "-yes", "-reason", "x", "-json", "bad_2"}, {"replay", "-yes", "bad_2"}} {
		s := newShop(t)
		s.badNight()
		p, _, complaints := s.program(args...)
		p.Stdout = writer{iotest.ErrReader(os.ErrClosed)}
		if status := p.run(t.Context()); status != command.Failed || !strings.Contains(complaints.String(), "idem: 1 event of notes: "+args[0]) || !strings.Contains(complaints.String(), os.ErrClosed.Error()) {
			t.Errorf("idem %q: exit status %d, %s", args, status, complaints)
		}
		s.wantText(`select state not in ('parked') from idem_events where event = 'notes//bad_2'`, "true")
	}
}

// writer fails as its reader does.
type writer struct {
	r interface{ Read([]byte) (int, error) }
}

func (w writer) Write(p []byte) (int, error) { return w.r.Read(p) }

// Whoever wants events kept permanently writes many days.
func TestAgeThatNoDurationCanHoldIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	before := s.text(`select count(*) from idem_events`)
	for _, days := range []string{"213504d", "300000d", "-213504d", "9999999999999d"} {
		s.wantSays(command.Misused, "it is no time such as 45d, 12h or 5s", "prune", "-yes", "-retention", days)
		s.wantSays(command.Misused, "nor how long ago", "list", "-since", days)
	}
	s.wantText(`select count(*) from idem_events`, before)
}

// A provider names events, and handlers write errors: neither may move the cursor
// of a terminal.
func TestComplaintsHaveNoControlCharacters(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("bad_1 paid pay_1")
	s.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise exception E'\x1b[2J\x1b]0;owned\x07'; end $$;
		create trigger refuse before insert on idem_audit for each row execute function refuse()`)
	status, _, complaints := s.idem("requeue", "-yes", "bad_1")
	if status != command.Failed || !strings.Contains(complaints, "could not be recorded") || strings.ContainsAny(complaints, "\x1b\x07") {
		t.Errorf("exit status %d, stderr %q", status, complaints)
	}
}
