package idemcmd

import (
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem/doctor"
)

func TestOutputIsAsPeopleAndProgramsReadIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		status int
	}{
		"stats.txt":           {[]string{"stats"}, exitDone},
		"stats.json":          {[]string{"stats", "-json"}, exitDone},
		"watch.txt":           {[]string{"watch", "-times", "1"}, exitDone},
		"list.txt":            {[]string{"list"}, exitDone},
		"list.json":           {[]string{"list", "-json", "-state", "parked,pending"}, exitDone},
		"show.txt":            {[]string{"show", "bad_5&77", "evt_1"}, exitDone},
		"show.json":           {[]string{"show", "-json", "notes/store-2/bad_6"}, exitDone},
		"show_payload.txt":    {[]string{"show", "-payload", "-as", "ana", "bad_2"}, exitDone},
		"show_payload.json":   {[]string{"show", "-payload", "-as", "ana", "-json", "bad_2"}, exitDone},
		"blocked.txt":         {[]string{"blocked"}, exitDone},
		"blocked.json":        {[]string{"blocked", "-json"}, exitDone},
		"requeue_dry_run.txt": {[]string{"requeue", "-dry-run"}, exitDone},
		"replay_dry_run.txt":  {[]string{"replay", "-dry-run"}, exitDone},
		"replay_dry_run.json": {[]string{"replay", "-dry-run", "-json"}, exitDone},
		"replay.txt":          {[]string{"replay", "-yes"}, exitDone},
		"replay.json":         {[]string{"replay", "-yes", "-json"}, exitDone},
		"discard.txt":         {[]string{"discard", "-reason", "test orders", "-yes", "-type", "paid"}, exitDone},
		"prune_dry_run.txt":   {[]string{"prune", "-retention", "36h", "-allow-processing-twice", "-dry-run"}, exitDone},
		"migrate.txt":         {[]string{"migrate"}, exitDone},
		"help.txt":            {[]string{"help"}, exitDone},
		"help_replay.txt":     {[]string{"help", "replay"}, exitDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.badNight()
			if strings.HasPrefix(name, "prune") {
				s.idem("prune") // which sees what is there
				s.exec(`update idem_prunes set ran_at = ran_at - interval '1 day'`)
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
		if status != exitDone || out == "" {
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
