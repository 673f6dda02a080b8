package queue

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
)

func TestStatusShowsEveryQueue(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.webhooks()
	status, out, complaints := a.queue(t, "status")
	golden(t, "status.txt", out)
	if status != 4 || complaints != "" {
		t.Errorf("exit status %d, %q", status, complaints)
	}
	status, out, complaints = a.queue(t, "-json", "status")
	golden(t, "status.json", out)
	if status != 4 || complaints != "" {
		t.Errorf("exit status %d, %q", status, complaints)
	}
}

func TestStatusOfAnAccountWhereAllIsWell(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	if status, out, _ := a.queue(t, "status"); status != 0 || out != "The account has no webhooks.\n" {
		t.Errorf("without webhooks: exit status %d, prints %q", status, out)
	}
	if status, out, _ := a.queue(t, "status", "-json"); status != 0 || out != `{"webhooks":[],"owed":null}`+"\n" {
		t.Errorf("without webhooks: exit status %d, prints %q", status, out)
	}
	_, _, penalized, stopped := a.webhooks()
	a.fake.RemoveBackoff(penalized)
	a.fake.Resume(stopped)
	if status, out, _ := a.queue(t, "status"); status != 4 || strings.Contains(out, "stopped,") || strings.Count(out, "  ok  ") != 3 {
		t.Errorf("with a webhook that is disabled: exit status %d, prints %s", status, out)
	}
	well := newAccount(t)
	well.fake.AddWebhook(asaastest.Webhook{URL: "https://shop.example/webhooks/asaas", Token: token})
	if status, out, _ := well.queue(t, "status"); status != 0 || strings.Count(out, "  ok  ") != 1 {
		t.Errorf("exit status %d, prints %s", status, out)
	}
}

func TestStatusTellsTheTimeLeft(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.webhooks()
	const day = 24 * time.Hour
	for _, test := range []struct {
		ago         time.Duration
		says        string
		seconds     int64 // at most
		atLeastSecs int64
	}{
		{0, "13d 23h", 14 * 86400, 14*86400 - 600},
		{4*day + 30*time.Minute, "9d 23h", 10*86400 - 1800, 10*86400 - 1800 - 600},
		{20 * day, "none, events may be deleted", 0, 0},
	} {
		last := time.Now().Add(-test.ago).Format(time.RFC3339)
		if _, out, _ := a.queue(t, "status", "-last-event", last); strings.Count(out, test.says) != 2 {
			t.Errorf("%s ago: prints %s", test.ago, out)
		}
		var got overview
		_, out, _ := a.queue(t, "status", "-json", "-last-event", last)
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Webhooks {
			if r.State.isHeldUp() != (r.SecondsLeft != nil) {
				t.Errorf("%s ago: %s is %s, with the time left %v", test.ago, r.Name, r.State, r.SecondsLeft)
			}
			if s := r.SecondsLeft; s != nil && (*s > test.seconds || *s < test.atLeastSecs) {
				t.Errorf("%s ago: %d s are left", test.ago, *s)
			}
		}
	}
	if status, _, complaints := a.queue(t, "status", "-last-event", "yesterday"); status != 2 || !strings.Contains(complaints, "no time such as 2026-11-20T10:00:00Z") {
		t.Errorf("exit status %d, %s", status, complaints)
	}
}

func TestTheStateOfAQueueIsNotGuessed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]row{
		`{"interrupted":true,"penalizedRequestsCount":15,"enabled":false}`:  {State: stopped, Penalized: 15},
		`{"interrupted":false,"penalizedRequestsCount":2,"enabled":false}`:  {State: penalizedState, Penalized: 2},
		`{"interrupted":false,"penalizedRequestsCount":0,"enabled":false}`:  {State: disabled},
		`{"interrupted":true,"penalizedRequestsCount":null,"enabled":true}`: {State: stopped, Enabled: true},
		`{"penalizedRequestsCount":0,"enabled":true}`:                       {State: unknown, Enabled: true},
		`{"interrupted":false,"enabled":true}`:                              {State: unknown, Enabled: true},
	} {
		var w asaas.Webhook
		if err := json.Unmarshal([]byte(body), &w); err != nil {
			t.Fatal(err)
		}
		got := newRow(&w, time.Time{})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		if words := string(got.State) + ", disabled"; got.State.isHeldUp() && !got.Enabled && got.words() != words {
			t.Errorf("%s: says %q, want %q", body, got.words(), words)
		}
	}
}

// A receiver behind basic authentication, or with a key in its address.
func TestNoSecretOfAnAddressIsPrinted(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	failing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	id := a.fake.AddWebhook(asaastest.Webhook{Handler: failing, URL: "https://asaas:hunter2@shop.example/webhooks/asaas?key=hunter2#hunter2", Token: token})
	a.fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	a.fake.Settle()
	no := "n\n"
	for _, args := range [][]string{{"status"}, {"status", "-json"}, {"remove-penalty", id}} {
		_, out, complaints := a.queueAnswering(t, &no, args...)
		if said := out + complaints; strings.Contains(said, "hunter2") || !strings.Contains(said, "https://shop.example/webhooks/asaas") {
			t.Errorf("%v prints %s", args, said)
		}
	}
}

// outage is an outage of a day in which every event was parked.
func outage(t *testing.T) (a *account, id string) {
	t.Helper()
	a = newAccount(t)
	a.parks = true
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
			!strings.Contains(out, "next: once that is fixed, idem requeue -failed has the workers of an inbox process them") {
			t.Errorf("%v: exit status %d, prints %q, %q", args, status, out, complaint)
		}
		status, out, _ = a.queue(t, append(args, "-json")...)
		if out = strings.Join(strings.Fields(out), ""); status != 4 || !strings.Contains(out, `"owed":[{"type":"PAYMENT_RECEIVED","parked":2,"pending":0,"failing":0,"waiting":0,"oldest":"20`) {
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
	if status, out, _ := a.queue(t, "status"); status != 4 || !strings.Contains(out, "next: once that is fixed, asaas-queue recover -sandbox ID -replay works through what is parked") {
		t.Errorf("exit status %d, prints %q", status, out)
	}
	status, out, complaints = a.queue(t, args...)
	want := "nothing is held up at Asaas, and nothing was changed there\nthe way is proved, handlers were not tried: OLDEST\nreplayed: 2 done, 0 failed again, 0 without handler\n" +
		"nothing is owed of what was delivered: no event is parked, fails, or waits for another one; reconcile finds what was never delivered\n"
	out = regexp.MustCompile(`the oldest event that failed is PAYMENT_RECEIVED evt_\S+ of pay_\S+`).ReplaceAllString(out, "OLDEST")
	if status != 0 || out != want || complaints != "" {
		t.Errorf("exit status %d, prints %q, %q", status, out, complaints)
	}
	if status, out, _ := a.queue(t, append(args, "-json")...); status != 0 || !strings.HasSuffix(out, `"step":"owed","owed":[]}`+"\n") {
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

func TestAPenaltyThatIsNotCountedIsRemoved(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	fine, _, _, _ := a.webhooks()
	if status, out, _ := a.queue(t, "remove-penalty", fine, "-yes"); status != 0 || !strings.HasPrefix(out, "the penalty is removed\n") || len(a.changes()) != 1 {
		t.Errorf("exit status %d, prints %q, changes %v", status, out, a.changes())
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
