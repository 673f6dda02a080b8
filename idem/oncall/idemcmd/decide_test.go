package idemcmd

import (
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestAPauseIsShownAskedAboutAndResumed(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	testkit.KeepAlive(s, s.pool, "notes")
	pause := []string{"pause", "-type", "paid", "-for", "2h", "-reason", "the bank is away", "-as", "ana"}
	for _, c := range []struct {
		reason string
		types  string // the answer
		status int
		says   string
		args   []string
	}{
		{"it needs an end", "", command.Misused, "say with -for how long, 2h for example: 7d at most", []string{"pause", "-reason", "x"}},
		{"which is near", "", command.Misused, "7d at most", []string{"pause", "-reason", "x", "-for", "8d"}},
		{"and a reason", "", command.Misused, "give a -reason", []string{"pause", "-for", "2h"}},
		{"and somebody who confirms it", "", command.Misused, "nobody is at a terminal", pause},
		{"who may say no", "n\n", command.Failed, "No event of type paid would begin for 2 h; what is running goes on to its end.", pause},
		{"who may only look", "", command.Done, "are pending now.\nNo event of type paid would begin", append(pause, "-dry-run")},
		{"nothing was paused so far", "", command.Nothing, "there is no such pause", []string{"resume", "-type", "paid", "-yes"}},
		{"it is begun", "y\n", command.Done, "Pause them? [y/N] ", pause},
		{"a requeue is refused", "", command.Failed, "by ana: the bank is away: end it with idem resume first", []string{"requeue", "bad_2", "-yes"}},
		{"and a replay, which may be told", "", command.Failed, "or replay them all the same: -paused of idem replay", []string{"replay", "bad_2", "-yes"}},
		{"as a dry run always may", "", command.Done, "1 event of notes: tried, and rolled back", []string{"replay", "bad_2", "-dry-run"}},
		{"a resume that is of others lists it", "", command.Nothing, "paused are events of type paid, until ", []string{"resume", "-entity", "pay_1", "-yes"}},
		{"it is ended", "y\n", command.Done, "Events of type paid would be due now.\nResume them? [y/N] ", []string{"resume", "-type", "paid", "-as", "bruno"}},
		{"and a requeue goes on", "", command.Done, "1 event of notes: requeued", []string{"requeue", "bad_2", "-yes"}},
	} {
		s.types = c.types
		status, out, complaints := s.idem(c.args...)
		if status != c.status || !strings.Contains(complaints+out, c.says) {
			t.Errorf("%s: exit status %d, %s%swant %d and %q", c.reason, status, out, complaints, c.status, c.says)
		}
	}
	s.wantText(`select string_agg(actor || ' ' || action || ' ' || filter, '; ' order by id) from idem_audit where action in ('pause', 'resume') and result !~ 'failed'`,
		"ana pause events of type paid; bruno resume events of type paid")
}

func TestADoneEventIsRunOnceMoreOnPurpose(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.inbox.KeepPayloads = true
	s.badNight()
	rerun := []string{"rerun", "evt_1", "-reason", "the ledger was restored", "-as", "ana"}
	for _, c := range []struct {
		reason string
		types  string
		status int
		says   string
		args   []string
	}{
		{"it needs a reason", "", command.Misused, "give a -reason", []string{"rerun", "evt_1"}},
		{"and one event", "", command.Misused, "say which event", []string{"rerun", "-reason", "x"}},
		{"which is stored", "", command.Nothing, "nothing", []string{"rerun", "nothing", "-reason", "x"}},
		{"and done", "", command.Failed, "it is parked: replay or requeue it", []string{"rerun", "bad_2", "-reason", "x"}},
		{"somebody may look only", "", command.Done, "what it writes and calls takes effect a second time", append(rerun, "-dry-run")},
		{"or say no", "n\n", command.Failed, "A dry run of the handler has just passed.\nRun it once more? [y/N] ", rerun},
		{"or yes", "y\n", command.Done, "1 event of notes: run once more\n", rerun},
	} {
		s.types = c.types
		status, out, complaints := s.idem(c.args...)
		if status != c.status || !strings.Contains(complaints+out, c.says) {
			t.Errorf("%s: exit status %d, %s%swant %d and %q", c.reason, status, out, complaints, c.status, c.says)
		}
	}
	s.wantText(`select count(*) from effects where event = 'evt_1'`, "2")
	s.wantText(`select actor || ' ' || action || ' ' || reason || ': ' || result from idem_audit`, "ana rerun the ledger was restored: 1 done")
	s.prebuilt()
	s.wantSays(command.Misused, "this program has no handlers", rerun...)
}

func TestStatsAndDoctorSayWhatIsPaused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("evt_1 paid pay_1")
	testkit.KeepAlive(s, s.pool, "notes")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"events of notes: paused", []string{"pause", "-entity", "pay_1", "-for", "2h", "-reason", "ticket 7", "-as", "ana", "-yes"}},
		{"paused: notes: events are paused", []string{"stats"}},
		{", by ana: ticket 7\n", []string{"stats"}},
		{`"pauses":[{"entity":"pay_1","at":"`, []string{"stats", "-json"}},
		{"paused: notes: events are paused", []string{"doctor"}},
		{"found: pay_1 until 2", []string{"doctor"}},
		{"run: idem resume -source notes -entity 'pay_1'", []string{"doctor"}},
		{"events of notes: resumed", []string{"resume", "-source", "notes", "-entity", "pay_1", "-yes"}},
	} {
		if _, out, complaints := s.idem(c.args...); !strings.Contains(out, c.says) {
			t.Errorf("idem %q does not say %q:\n%s%s", c.args, c.says, out, complaints)
		}
	}
}
