package idemcmd

import (
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem/doctor"
	"github.com/paghooks/paghooks/internal/command"
)

func TestOutputIsAsPeopleAndProgramsReadIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		status int
	}{
		"stats.txt":              {[]string{"stats"}, command.Done},
		"stats.json":             {[]string{"stats", "-json"}, command.Done},
		"watch.txt":              {[]string{"watch", "-times", "1"}, command.Done},
		"list.txt":               {[]string{"list"}, command.Done},
		"list_narrow.txt":        {[]string{"list"}, command.Done},
		"list.json":              {[]string{"list", "-json", "-state", "parked,pending"}, command.Done},
		"show.txt":               {[]string{"show", "bad_5&77", "evt_1"}, command.Done},
		"show.json":              {[]string{"show", "-json", "notes/store-2/bad_6"}, command.Done},
		"show_payload.txt":       {[]string{"show", "-payload", "-as", "ana", "bad_2"}, command.Done},
		"show_payload.json":      {[]string{"show", "-payload", "-as", "ana", "-json", "bad_2"}, command.Done},
		"show_entity.txt":        {[]string{"show", "-entity", "pay_1", "-entity", "pay_2"}, command.Done},
		"show_entity.json":       {[]string{"show", "-entity", "pay_2", "-json"}, command.Done},
		"blocked.txt":            {[]string{"blocked"}, command.Done},
		"blocked.json":           {[]string{"blocked", "-json"}, command.Done},
		"requeue_dry_run.txt":    {[]string{"requeue", "-dry-run"}, command.Done},
		"replay_narrow.txt":      {[]string{"replay", "-dry-run"}, command.Done},
		"replay_dry_run.txt":     {[]string{"replay", "-dry-run"}, command.Done},
		"replay_dry_run.json":    {[]string{"replay", "-dry-run", "-json"}, command.Done},
		"replay.txt":             {[]string{"replay", "-yes"}, command.Done},
		"replay.json":            {[]string{"replay", "-yes", "-json"}, command.Done},
		"show_entity_narrow.txt": {[]string{"show", "-entity", "pay_2"}, command.Done},
		"show_narrow.txt":        {[]string{"show", "bad_2"}, command.Done},
		"discard.txt":            {[]string{"discard", "-reason", "test orders", "-yes", "-type", "paid"}, command.Done},
		"erase.txt":              {[]string{"erase", "-reason", "request 17", "-yes", "-entity", "pay_1", "bad_2", "-discard"}, command.Done},
		"erase.json":             {[]string{"erase", "-reason", "request 17", "-yes", "-json", "evt_1"}, command.Done},
		"erase_left.txt":         {[]string{"erase", "-reason", "request 17", "-yes", "-entity", "pay_1", "-entity", "pay_2"}, command.Failed},
		"erase_dry_run.txt":      {[]string{"erase", "-reason", "request 17", "-dry-run", "-entity", "pay_1", "-entity", "pay_2"}, command.Failed},
		"help_erase.txt":         {[]string{"help", "erase"}, command.Done},
		"prune_dry_run.txt":      {[]string{"prune", "-retention", "36h", "-allow-processing-twice", "-dry-run"}, command.Done},
		"stop.txt":               {[]string{"stop", "-as", "ana", "1"}, command.Done},
		"stop.json":              {[]string{"stop", "-as", "ana", "-json", "1"}, command.Done},
		"migrate.txt":            {[]string{"migrate"}, command.Done},
		"help.txt":               {[]string{"help"}, command.Done},
		"help_replay.txt":        {[]string{"help", "replay"}, command.Done},
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
			if strings.Contains(name, "narrow") {
				s.width = 60
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
