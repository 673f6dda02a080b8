package queue

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/webhook"
)

func TestPenaltyIsRemovedAndQueueIsResumed(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-yes"}, {"-yes", "-json"}} {
		a := newAccount(t)
		_, _, penalized, stopped := a.webhooks()
		status, removed, complaints := a.queue(t, append([]string{"remove-penalty", penalized}, args...)...)
		status2, resumed, complaints2 := a.queue(t, slices.Concat([]string{"-json=false", "resume", stopped}, args)...)
		const look = "look with status whether the failures fall within some minutes"
		want := "the penalty is removed\nnext: " + look + "\nthe queue is resumed\nnext: " + look + "; if they do not: asaas-queue remove-penalty -sandbox " + stopped + "\n"
		if len(args) > 1 {
			want = `{"id":"` + penalized + `","step":"penalty removed","penalized_requests":7,"says":"the penalty is removed"}` + "\n" +
				`{"id":"` + penalized + `","next":"` + look + `"}` + "\n" +
				`{"id":"` + penalized + `","step":"owed","owed":null}` + "\n" +
				`{"id":"` + stopped + `","step":"resumed","penalized_requests":15,"says":"the queue is resumed"}` + "\n" +
				`{"id":"` + stopped + `","next":"` + look + `; if they do not: asaas-queue remove-penalty -sandbox ` + stopped + `"}` + "\n" +
				`{"id":"` + stopped + `","step":"owed","owed":null}` + "\n"
		}
		if diff := cmp.Diff(want, removed+resumed); diff != "" || status != 0 || status2 != 0 || complaints+complaints2 != "" {
			t.Errorf("%v: exit status %d and %d, %q, (-want +got):\n%s", args, status, status2, complaints+complaints2, diff)
		}
		if diff := cmp.Diff([]asaastest.Kind{asaastest.BackoffRemoved, asaastest.Resumed}, a.changes()); diff != "" {
			t.Errorf("%v: (-want +got):\n%s", args, diff)
		}
	}
}

func TestRecoverProvesTheReceiverAndWatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		outage time.Duration
		json   bool
		want   string
	}{
		{time.Hour, false, "recover_penalized.txt"},
		{24 * time.Hour, true, "recover_stopped.json"},
	} {
		a := newAccount(t)
		id, broken := a.application(t, test.outage)
		broken.Store(false)
		args := []string{"recover", id, "-every=1ms", "-yes"}
		if test.json {
			args = append(args, "-json")
		}
		status, out, complaints := a.queue(t, args...)
		golden(t, test.want, out)
		if w := a.fake.Webhook(id); status != 0 || complaints != "" || w.Pending != 0 || len(a.changes()) != 1 {
			t.Errorf("exit status %d, %q, %d events wait, changes %v", status, complaints, w.Pending, a.changes())
		}
		status, out, _ = a.queue(t, args...)
		if status != 0 || !strings.Contains(out, "nothing was changed") && !strings.Contains(out, `"step":"not needed"`) || len(a.changes()) != 1 {
			t.Errorf("when all is well: exit status %d, prints %q", status, out)
		}
	}
}

func TestRecoverThatFailsExits1AndSaysWhy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why     string
		prepare func(a *account, id string, repair func())
		says    string
		changes int
	}{
		{
			"the handler is still broken",
			func(a *account, _ string, _ func()) { a.env["DATABASE_URL"] = a.database },
			"not recovered: nothing was changed: the handlers fail with PAYMENT_RECEIVED evt_", 0,
		},
		{
			"another token",
			func(a *account, _ string, repair func()) { repair(); a.env["ASAAS_WEBHOOK_TOKEN"] = "another" },
			"(wrong_token): give the canary the token or secret that the application verifies with", 0,
		},
		{
			"it breaks again",
			func(a *account, _ string, repair func()) {
				repair()
				a.printed = func(line string) {
					if strings.Contains(line, "the penalty is removed") {
						a.fake.Inject(slices.Repeat([]asaastest.Fault{asaastest.LostAnswer}, 15)...)
					}
					a.fake.Advance(time.Minute)
				}
			},
			"the penalty was removed: there are new failures, Asaas counts", 1,
		},
		{
			"it is disabled",
			func(a *account, id string, repair func()) { repair(); disable(a, id) },
			"nothing was changed: the webhook is disabled", 0,
		},
	} {
		a := newAccount(t)
		a.hasParked = true
		id, broken := a.application(t, time.Hour)
		test.prepare(a, id, func() { broken.Store(false) })
		status, _, complaints := a.queue(t, "recover", "-yes", "-try", "-every", "1ms", id)
		if status != 1 || !strings.Contains(strings.ReplaceAll(complaints, id, "ID"), test.says) || len(a.changes()) != test.changes {
			t.Errorf("%s: exit status %d, changes %v, %s", test.why, status, a.changes(), complaints)
		}
	}
}

// disable disables a webhook through the API.
func disable(a *account, id string) {
	r, err := http.NewRequest(http.MethodPut, a.fake.URL+"/v3/webhooks/"+id, strings.NewReader(`{"enabled":false}`))
	if err != nil {
		panic(err)
	}
	r.Header.Set("access_token", a.fake.APIKey)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		panic(err)
	}
	answer.Body.Close()
}

func TestAPersonIsAskedBeforeAChange(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		typed   string
		changed bool
	}{
		{"y\n", true},
		{" Yes \n", true},
		{"y", true},
		{"\n", false},
		{"n\n", false},
		{"yess\n", false},
		{"n", false},
	} {
		a := newAccount(t)
		_, _, penalized, stopped := a.webhooks()
		for command, id := range map[string]string{"remove-penalty": penalized, "resume": stopped} {
			before := len(a.changes())
			status, out, complaints := a.queueAnswering(t, &test.typed, command, id)
			asked := strings.Contains(complaints, "Asaas counts ") && strings.Contains(complaints, "without trying the receiver? [y/N] ")
			changed := len(a.changes()) > before
			if !asked || changed != test.changed || (status == 0) != test.changed || (out != "") != test.changed {
				t.Errorf("%s, %q: exit status %d, changed: %t, %q, %q", command, test.typed, status, changed, out, complaints)
			}
			if !changed && (status != 1 || !strings.Contains(complaints, "nothing was changed: the answer was not y\n")) {
				t.Errorf("%s, %q: exit status %d, %q", command, test.typed, status, complaints)
			}
		}
	}
}

func TestAPersonIsAskedBeforeACanaryIsSent(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	id, broken := a.application(t, time.Hour)
	broken.Store(false)
	no, yes := "n\n", "y\n"
	status, out, complaints := a.queueAnswering(t, &no, "recover", id, "-every", "1ms")
	question := "Send a canary to the receiver, and start the queue again if it arrives? [y/N] asaas-queue: nothing was changed: the answer was not y\n"
	if status != 1 || out != "" || !strings.HasPrefix(complaints, "shop at http://127.0.0.1:") || !strings.HasSuffix(complaints, question) || a.changes() != nil {
		t.Errorf("exit status %d, %q, %q", status, out, complaints)
	}
	if status, _, _ := a.queueAnswering(t, &yes, "recover", id, "-every", "1ms"); status != 0 || len(a.changes()) != 1 {
		t.Errorf("exit status %d, changes %v", status, a.changes())
	}
}

// Their HTTP requests and e-mails are real.
func TestHandlersAreTriedOnlyIfAPersonOrAFlagSaysSo(t *testing.T) {
	t.Parallel()
	both, one, none := "y\ny\n", "y\nn\n", "y\n"
	const passed, left = "the way is proved, and the handlers passed with the oldest event that failed, PAYMENT_RECEIVED evt_", "the way is proved, handlers were not tried: the oldest event that failed is PAYMENT_RECEIVED evt_"
	for _, test := range []struct {
		why   string
		typed *string
		args  []string
		says  string
		asked bool
	}{
		{"a person says yes", &both, nil, passed, true},
		{"a person says no", &one, nil, left, true},
		{"a person has left", &none, nil, left, true},
		{"a flag says it, and a person is not asked", &both, []string{"-try"}, passed, false},
		{"a person is there, and is not asked anything", &both, []string{"-yes"}, left, false},
		{"nobody is there, and a flag says it", nil, []string{"-yes", "-try"}, passed, false},
		{"nobody is there, and nothing says it", nil, []string{"-yes"}, left, false},
	} {
		a := newAccount(t)
		a.hasParked = true
		id, broken := a.application(t, time.Hour)
		broken.Store(false)
		a.env["DATABASE_URL"] = a.database
		status, out, complaints := a.queueAnswering(t, test.typed, append([]string{"recover", id, "-every", "1ms"}, test.args...)...)
		asked := strings.Contains(complaints, "The oldest event that failed is PAYMENT_RECEIVED evt_") && strings.Contains(complaints, "Try the handlers with it? ")
		if status != 4 || !strings.HasPrefix(out, test.says) || asked != test.asked || len(a.changes()) != 1 {
			t.Errorf("%s: exit status %d, %q, %q, changes %v", test.why, status, out, complaints, a.changes())
		}
	}
}

func TestWithoutATerminalNothingIsChangedUnlessToldSo(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	_, _, penalized, _ := a.webhooks()
	for _, command := range []string{"remove-penalty", "resume", "recover"} {
		status, out, complaints := a.queue(t, command, penalized)
		if status != 2 || out != "" || !strings.Contains(complaints, "nobody is at a terminal to confirm it: give -yes") || a.changes() != nil {
			t.Errorf("%s: exit status %d, %q, %q", command, status, out, complaints)
		}
	}
}

func TestATerminalWithoutAPersonIsNone(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	_, _, penalized, _ := a.webhooks()
	nothing := "" // such as /dev/null
	for _, command := range []string{"remove-penalty", "recover"} {
		status, out, complaints := a.queueAnswering(t, &nothing, command, penalized)
		if status != 2 || out != "" || !strings.HasSuffix(complaints, "nobody is at a terminal to confirm it: give -yes\n") || a.changes() != nil {
			t.Errorf("%s: exit status %d, %q, %q", command, status, out, complaints)
		}
	}
}

func TestTheOtherRemedyIsNamed(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	_, disabled, penalized, stopped := a.webhooks()
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"remove-penalty", stopped}, 1, "is stopped: use resume, or recover"},
		{[]string{"resume", penalized}, 1, "is penalized: use remove-penalty, or recover"},
		{[]string{"resume", disabled}, 1, "nothing was changed: the webhook is disabled: Asaas makes no events for it"},
		{[]string{"remove-penalty", disabled}, 1, "nothing was changed: the webhook is disabled"},
	} {
		status, out, complaints := a.queue(t, append(test.args, "-yes")...)
		if status != test.status || !strings.Contains(out+complaints, test.says) || a.changes() != nil {
			t.Errorf("%v: exit status %d, %q, %q", test.args, status, out, complaints)
		}
	}
}

func TestAnInterruptEndsARecovery(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	id, broken := a.application(t, time.Hour)
	broken.Store(false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a.printed = func(line string) {
		if strings.Contains(line, "the penalty is removed") {
			cancel()
		}
	}
	p, _, complaints := a.program(nil)
	status := p.run(ctx, []string{"-sandbox", "recover", "-yes", id})
	if says := "the penalty was removed: it was interrupted with 7 failures counted, look again: context canceled\n"; status != 130 || !strings.HasSuffix(complaints.String(), says) {
		t.Errorf("exit status %d, %q", status, complaints)
	}
}

func TestAWebhookThatIsDisabledIsEnabledAsTyped(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	_, disabled, _, stopped := a.webhooks()
	status, _, complaints := a.queue(t, "resume", disabled, "-yes")
	advice := "asaas-queue enable -sandbox " + disabled
	if status != 1 || !strings.Contains(complaints, advice) {
		t.Fatalf("resume: exit status %d, %s", status, complaints)
	}
	if status, out, complaints := a.queue(t, "enable", disabled); status != 2 || out != "" || !strings.Contains(complaints, "give -yes") {
		t.Errorf("where nobody is asked: exit status %d, %q, %q", status, out, complaints)
	}
	status, out, complaints := a.queue(t, append(strings.Fields(advice)[1:], "-yes")...)
	if status != 0 || !strings.HasPrefix(out, "the webhook is enabled\nnext: what happened while it was disabled never comes as events: asaas-queue reconcile -sandbox -since TIME") {
		t.Errorf("enable: exit status %d, %q, %q", status, out, complaints)
	}
	if status, out, _ := a.queue(t, "resume", disabled, "-yes"); status != 0 || !strings.Contains(out, "the queue is resumed") {
		t.Errorf("afterwards: exit status %d, %q", status, out)
	}

	disable(a, stopped)
	status, out, _ = a.queue(t, "enable", stopped, "-yes", "-json")
	if status != 0 || !strings.HasPrefix(out, `{"id":"`+stopped+`","step":"enabled",`) || !strings.Contains(out, "its queue is stopped: asaas-queue recover -sandbox "+stopped) {
		t.Errorf("one that was stopped, too: exit status %d, %q", status, out)
	}
}

func TestOfAWebhookThatWasDeletedItSaysHowToMakeItAgain(t *testing.T) {
	t.Parallel()
	events := asaas.NewDispatcher(token)
	for _, test := range []struct {
		why     string
		program Command
		says    string
	}{
		{"a program that knows nothing of it", Command{}, "asaas-queue apply -sandbox -name NAME -url URL -email ADDRESS -handled FILE, where the file has "},
		{"one that knows its address", Command{Webhook: webhook.Settings{URL: "https://shop.example"}, Dispatcher: events}, "asaas-queue apply -sandbox -name NAME -email ADDRESS; "},
		{"one that knows it all", Command{Name: "shop-queue", Webhook: webhook.Settings{Name: "shop", URL: "https://shop.example", Email: "ops@shop.example"}, Dispatcher: events}, "shop-queue apply -sandbox; "},
	} {
		a := newAccount(t)
		fine, _, _, _ := a.webhooks()
		if err := a.fake.Client().DeleteWebhook(t.Context(), fine); err != nil {
			t.Fatal(err)
		}
		p, out, complaints := a.program(nil)
		p.Command = test.program
		status := p.run(t.Context(), []string{"enable", "-sandbox", fine, "-yes"})
		if status != 3 || out.String() != "" || !strings.Contains(complaints.String(), "make it again: "+test.says) {
			t.Errorf("%s: exit status %d, %q, %q", test.why, status, out, complaints)
		}
	}
}
