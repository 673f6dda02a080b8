package queue

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
)

// outage is an outage of a day in which every event was parked.
func outage(t *testing.T) (a *account, id string) {
	t.Helper()
	a = newAccount(t)
	a.parkAfter = 10
	id, broken := a.application(t, 24*time.Hour)
	broken.Store(false)
	return a, id
}

func TestTheCommandEndsWithWhatIsOwed(t *testing.T) {
	t.Parallel()
	a, id := outage(t)
	for _, args := range [][]string{{"status"}, {"recover", id, "-yes", "-every=1ms"}, {"resume", id, "-yes"}, {"remove-penalty", id, "-yes"}} {
		a.env["DATABASE_URL"] = ""
		p, _, complaints := a.program(nil)
		if status := p.run(t.Context(), append(args, "-sandbox")); status != 0 || !strings.Contains(complaints.String(), string(owedUnknown)) {
			t.Errorf("%v: exit status %d, %q", args, status, complaints)
		}
		a.env["DATABASE_URL"] = a.database
		status, out, complaint := a.queue(t, args...)
		if status != 4 || complaint != "" || !strings.Contains(out, "still owed; idem list shows the events, and why:\n  2 PAYMENT_RECEIVED parked, since 20") ||
			!strings.Contains(out, "next: once that is fixed, idem requeue has the workers of an inbox process them") {
			t.Errorf("%v: exit status %d, prints %q, %q", args, status, out, complaint)
		}
		status, out, _ = a.queue(t, append(args, "-json")...)
		if out = strings.Join(strings.Fields(out), ""); status != 4 || !strings.Contains(out, `"owed":[{"type":"PAYMENT_RECEIVED","parked":2,"retrying":0,"pending":0,"oldest":"20`) {
			t.Errorf("%v: exit status %d, prints %q", args, status, out)
		}
	}
}

func TestRecoverReplaysWithTheHandlers(t *testing.T) {
	t.Parallel()
	a, id := outage(t)
	args := []string{"recover", id, "-yes", "-every=1ms", "-replay"}
	status, out, complaints := a.queue(t, args...)
	if status != 2 || out != "" || !strings.Contains(complaints, "nothing was changed: -replay needs the application's handlers") {
		t.Errorf("without handlers: exit status %d, prints %q, %q", status, out, complaints)
	}
	a.events = a.handlers
	if status, out, _ := a.queue(t, "status"); status != 4 || !strings.Contains(out, "recover -replay works through them") {
		t.Errorf("exit status %d, prints %q", status, out)
	}
	status, out, complaints = a.queue(t, args...)
	want := "nothing is held up at Asaas, and nothing was changed there\nthe probe passed\nreplayed: 2 done, 0 failed again, 0 without handler\n" +
		"nothing is owed of what was delivered: no event is parked, and none waits for another delivery; reconcile finds what was never delivered\n"
	if status != 0 || out != want || complaints != "" {
		t.Errorf("exit status %d, prints %q, %q", status, out, complaints)
	}
	if status, out, _ := a.queue(t, append(args, "-json")...); status != 0 || !strings.HasSuffix(out, `"step":"owed","owed":[]}`+"\n") {
		t.Errorf("exit status %d, prints %q", status, out)
	}
}

func TestWhatIsReplayedIsPrintedAsJSON(t *testing.T) {
	t.Parallel()
	a, id := outage(t)
	a.events = a.handlers
	status, out, _ := a.queue(t, "recover", id, "-yes", "-json", "-replay")
	if says := `"step":"replayed","penalized_requests":0,"replayed":{"done":2,"failed":0,"unhandled":0}}` + "\n"; status != 0 || !strings.Contains(out, says) {
		t.Errorf("exit status %d, prints %q", status, out)
	}
}

// hostile has parked an event whose type, which the body names, moves a terminal's cursor.
type hostile struct{ asaas.EventStore }

func (hostile) List(context.Context, idem.Filter) iter.Seq2[idem.StoredEvent, error] {
	return func(yield func(idem.StoredEvent, error) bool) {
		yield(idem.StoredEvent{Event: idem.Event{Type: "SENT\x1b[2J\n_BY\u202e_A STRANGER"}, State: idem.StateParked}, nil)
	}
}

func TestWhatIsOwedMovesNoCursor(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.events = hostile{}
	if _, out, _ := a.queue(t, "status"); !strings.Contains(out, "\n  1 SENT\uFFFD[2J _BY\uFFFD_A STRANGER parked, since ") {
		t.Errorf("it prints %q", out)
	}
}

func TestADatabaseThatCannotBeReadIsSaidWithoutItsPassword(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for address, c := range map[string]struct {
		status int
		says   string
	}{
		"nonsense":                              {2, "DATABASE_URL is not the address of a database"},
		"postgres://u:hunter2@127.0.0.1:1/shop": {1, "what the application owes is not known, see its database"},
	} {
		for _, args := range [][]string{{"status"}, {"status", "-database", address}} {
			a.env["DATABASE_URL"] = address
			if len(args) > 1 {
				a.env["DATABASE_URL"] = "another one"
			}
			status, _, complaints := a.queue(t, args...)
			if status != c.status || !strings.Contains(complaints, c.says) || strings.Contains(complaints, "hunter2") {
				t.Errorf("%s: %v: exit status %d, %q", address, args, status, complaints)
			}
		}
	}
}

func TestAPenaltyThatIsNotCountedIsRemovedByForce(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	fine, _, _, _ := a.webhooks()
	if status, out, _ := a.queue(t, "remove-penalty", fine, "-yes", "-force"); status != 0 || !strings.HasPrefix(out, "the penalty is removed\n") || len(a.changes()) != 1 {
		t.Errorf("exit status %d, prints %q, changes %v", status, out, a.changes())
	}
	// Another process of this machine.
	status, out, complaints := a.queue(t, "remove-penalty", fine, "-yes", "-force")
	if status != 1 || out != "" || !strings.Contains(complaints, "nothing was changed: nothing was sent: it was done a short while ago, and may be done again in ") || len(a.changes()) != 1 {
		t.Errorf("exit status %d, prints %q, %q, changes %v", status, out, complaints, a.changes())
	}
}

func TestAChangeOfWhichNothingIsKnownIsSaid(t *testing.T) {
	t.Parallel()
	for command, says := range map[string]string{
		"remove-penalty": "it is not known whether the penalty was removed: there is no answer, it may have been done",
		"resume":         "it is not known whether the queue was resumed: there is no answer, it may have been done",
	} {
		a := newAccount(t)
		_, _, penalized, stopped := a.webhooks()
		id := map[string]string{"remove-penalty": penalized, "resume": stopped}[command]
		a.fake.InjectAPI(nil, asaastest.APILostAnswer)
		status, out, complaints := a.queue(t, command, id, "-yes")
		if status != 1 || out != "" || !strings.Contains(complaints, says) {
			t.Errorf("%s: exit status %d, prints %q, %q", command, status, out, complaints)
		}
	}
}
