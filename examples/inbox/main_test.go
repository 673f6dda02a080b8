package main

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestProgramEndsWithEachPaymentBookedOnce(t *testing.T) {
	t.Parallel()
	idemtest.URL(t) // without any Postgres, the test ends here
	path := filepath.Join(t.TempDir(), "inbox")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), path, "-events", "402").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, line := range []string{
		`acknowledged   400   duplicates   100   done   400   pending     0`,
		`500 deliveries were acknowledged within \S+, and worked on within \S+\.`,
		`Half of the answers came within \S+, 99 % within \S+\.`,
		`Each of the 100 payments is booked once, with its 4 events in order\.`,
	} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).Match(out) {
			t.Errorf("the output lacks the line\n%s\n%s", line, out)
		}
	}
}

func TestProgramSaysWhatItTakes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "inbox")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"burst"}, {"-events", "3"}} {
		cmd := exec.Command(path, args...)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !strings.HasPrefix(string(out), "inbox: it takes flags only, and 4 events at least") {
			t.Errorf("%v: %v: %s", args, cmd.ProcessState, out)
		}
	}
}

func TestWhatIsWrongInTheLedgerIsSaid(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, sql, want string
	}{
		{"a payment that is lost", `delete from payments where id = 'pay_1_a1B2c3D4000001'; delete from ledger where payment = 'pay_1_a1B2c3D4000001'`, "1 payments are missing"},
		{"events out of order", `update payments set history[1] = history[2] where id = 'pay_1_a1B2c3D4000001'`, "1 payments have events that are missing, doubled or out of order"},
		{"a payment booked twice", `insert into ledger select * from ledger where payment = 'pay_1_a1B2c3D4000001'`, "1 payments are not booked once"},
		{"a payment not booked", `delete from ledger where payment = 'pay_1_a1B2c3D4000001'`, "1 payments are not booked once"},
		{"a cent too much", `update ledger set amount = amount + 0.01 where payment = 'pay_1_a1B2c3D4000001'`, "1 bookings have the wrong amount, or belong to no payment"},
		{"an event that is not done", `update idem_events set state = 'parked' where event = 'asaas//evt_1&0'`, "1 events are not done"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			database := idemtest.URL(t)
			if err := play(t.Context(), database, 2, io.Discard, false); err != nil {
				t.Fatal(err)
			}
			pool, err := pgxpool.New(t.Context(), database)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			if _, err := pool.Exec(t.Context(), test.sql); err != nil {
				t.Fatal(err)
			}
			if err := checkLedger(t.Context(), pool, 2); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want: %s", err, test.want)
			}
		})
	}
}

func TestProgressIsOneLineOnATerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := play(t.Context(), idemtest.URL(t), 2, &out, true); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if last := "\racknowledged     8   duplicates     2   done     8   pending     0"; !strings.HasSuffix(lines[0], last) {
		t.Errorf("the first line is %q, and should end with %q", lines[0], last)
	}
}

func TestInterruptEndsTheBurst(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	err := play(ctx, idemtest.URL(t), 1000, stopper(stop), true)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// stopper ends a context with the first sign of progress.
type stopper context.CancelFunc

func (s stopper) Write(p []byte) (int, error) {
	s()
	return len(p), nil
}
