package queue

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/command"
)

const token = "the-token-of-the-webhook-of-the-test"

// account is an account at a fake Asaas, with the environment of a person who
// looks after it.
type account struct {
	fake      *asaastest.Fake
	env       map[string]string
	events    asaas.EventStore                           // what the program is built with
	printed   func(line string)                          // called with each line of the output, as it comes
	parks     bool                                       // the application answers first, and parks what fails
	hasParked bool                                       // the application has parked an event before
	wait      func(context.Context, time.Duration) error // nil waits in real time

	// Set by application:
	database string
	handlers *idem.Inbox
}

func newAccount(t *testing.T) *account {
	t.Helper()
	fake := asaastest.NewServer()
	t.Cleanup(fake.Close)
	return &account{
		fake: fake,
		env: map[string]string{
			"ASAAS_API_KEY":       fake.APIKey,
			"ASAAS_WEBHOOK_TOKEN": token,
			"ASAAS_BASE_URL":      fake.URL + "/v3",
		},
		printed: func(string) {},
	}
}

// webhooks adds one webhook of each state. Of those that fail three events wait.
func (a *account) webhooks() (fine, disabled, penalized, stopped string) {
	failing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	types := []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentOverdue}
	add := func(name string, w asaastest.Webhook) string {
		w.Name, w.URL, w.Token, w.Events = name, "https://shop.example/webhooks/asaas", token, types
		return a.fake.AddWebhook(w)
	}
	stopped = add("stopped", asaastest.Webhook{Handler: failing})
	a.fake.Emit(asaastest.Event("PAYMENT_RECEIVED"), asaastest.Event("PAYMENT_RECEIVED"), asaastest.Event("PAYMENT_RECEIVED"))
	a.fake.Advance(24 * time.Hour)
	fine = add("fine", asaastest.Webhook{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	disabled = add("disabled", asaastest.Webhook{Handler: failing, Disabled: true})
	penalized = add("a\tshop \x1b[31m", asaastest.Webhook{Handler: failing})
	a.fake.Emit(asaastest.Event("PAYMENT_OVERDUE"))
	a.fake.Advance(time.Hour)
	return fine, disabled, penalized, stopped
}

// queue runs the command for the sandbox; nobody is at a terminal.
func (a *account) queue(t *testing.T, args ...string) (status int, out, complaints string) {
	t.Helper()
	return a.queueAnswering(t, nil, args...)
}

// queueAnswering runs the command with a person who types this, if not nil.
func (a *account) queueAnswering(t *testing.T, typed *string, args ...string) (status int, out, complaints string) {
	t.Helper()
	p, o, c := a.program(typed)
	status = p.run(t.Context(), append([]string{"-sandbox"}, args...))
	for _, secret := range []string{a.env["ASAAS_API_KEY"], token} {
		if secret != "" && strings.Contains(o.String()+c.String(), secret) {
			t.Errorf("%v prints a secret:\n%s%s", args, o, c)
		}
	}
	return status, o.String(), strings.TrimSuffix(c.String(), owedUnknown+"\n")
}

// program is the command with what it prints.
func (a *account) program(typed *string) (p *program, out, complaints *strings.Builder) {
	out, complaints = new(strings.Builder), new(strings.Builder)
	p = &program{
		Command: Command{Events: a.events}, wait: a.wait,
		getenv: func(name string) string { return a.env[name] }, in: strings.NewReader(""), zone: time.UTC,
		out: &watched{into: out, printed: a.printed}, complaints: complaints,
	}
	if typed != nil {
		p.in, p.asks = &typing{*typed}, true
	}
	return p, out, complaints
}

// typing is a terminal: a Read returns a line.
type typing struct{ rest string }

func (t *typing) Read(p []byte) (int, error) {
	line, _, _ := strings.Cut(t.rest, "\n")
	n := copy(p, t.rest[:min(len(line)+1, len(t.rest))])
	if n == 0 {
		return 0, io.EOF
	}
	t.rest = t.rest[n:]
	return n, nil
}

// atOnce spends no time.
func atOnce(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }

// watched tells of each line that is written.
type watched struct {
	into    io.Writer
	printed func(string)
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.into.Write(p)
	w.printed(string(p))
	return n, err
}

// application is a running application with a database and a webhook, and two
// events that failed for a while.
func (a *account) application(t *testing.T, d time.Duration) (id string, broken *atomic.Bool) {
	t.Helper()
	a.database = idemtest.URL(t)
	pool, err := pgxpool.New(t.Context(), a.database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	broken = new(atomic.Bool)
	broken.Store(true)
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error {
		if broken.Load() {
			return errors.New("a mistake")
		}
		return nil
	})
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = slog.New(slog.DiscardHandler)
	inbox.MaxAttempts = 1
	if a.hasParked {
		_, err := inbox.Accept(t.Context(), asaas.Identify(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.id", "pay_0"))))
		if err := errors.Join(err, inbox.Drain(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	inbox.WorkFirst = !a.parks // without workers a failure is answered 503, so that the queue can be stopped
	a.handlers = inbox
	server := httptest.NewServer(inbox)
	t.Cleanup(server.Close)
	id = a.fake.AddWebhook(asaastest.Webhook{URL: server.URL + "/asaas", Token: token, Name: "shop", Events: []asaas.EventType{asaas.EventPaymentReceived}})
	a.fake.Emit(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.id", "pay_1")), asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.id", "pay_2")))
	a.fake.Advance(d)
	if err := inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.printed = func(string) { a.fake.Advance(time.Minute) } // time passes at Asaas, too
	return id, broken
}

// changes are what was done to the queues through the API.
func (a *account) changes() (out []asaastest.Kind) {
	for _, e := range a.fake.Timeline() {
		if e.Kind == asaastest.Resumed || e.Kind == asaastest.BackoffRemoved {
			out = append(out, e.Kind)
		}
	}
	return out
}

var update = flag.Bool("update", false, "write the golden files")

// golden compares an output with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", name), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// receiver adds a webhook whose events a server takes, with one that failed.
func (a *account) receiver(t *testing.T, h http.Handler) (id string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	id = a.fake.AddWebhook(asaastest.Webhook{URL: server.URL + "/asaas", Token: token, Name: "shop", Events: []asaas.EventType{asaas.EventPaymentReceived}})
	a.fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	a.fake.Settle()
	return id
}

func TestHelpIsNoMistakeAndNeedsNoKey(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.env = nil
	for _, args := range [][]string{{"-help"}, {"help"}, {"-h", "-json"}} {
		status, out, complaints := a.queue(t, args...)
		if status != 0 || complaints != "" || !strings.HasPrefix(out, "usage: asaas-queue VERB [flags]\n") {
			t.Errorf("%v: exit status %d, prints %q, %q", args, status, out, complaints)
		}
		for _, v := range new(program).verbs() {
			if !strings.Contains(out, "\n  "+v.Name+" ") {
				t.Errorf("%v does not tell of %s", args, v.Name)
			}
		}
	}
	if status, _, complaints := a.queue(t, "help", "repair"); status != 2 || !strings.Contains(complaints, `there is no verb "repair"`) {
		t.Errorf("exit status %d, %q", status, complaints)
	}
}

// flagsOf are the names of a verb's flags.
func flagsOf(v command.Verb) []string {
	set, names := flag.NewFlagSet("", flag.ContinueOnError), []string{"sandbox", "json"}
	v.Flags[0](set)
	set.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

func TestEveryVerbHasHelpOfItsOwn(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for _, v := range new(program).verbs() {
		status, out, complaints := a.queue(t, "help", v.Name)
		_, same, _ := a.queue(t, v.Name, "--help")
		if status != 0 || complaints != "" || same != out || !strings.HasPrefix(out, strings.TrimSpace("usage: asaas-queue "+v.Name+" [flags] "+v.Words)+"\n") {
			t.Errorf("%s: exit status %d, prints %q, %q", v.Name, status, out, complaints)
		}
		for _, flag := range []string{"yes", "replay", "last-event", "handled", "every", "sandbox", "json", "database"} {
			if takes := slices.Contains(flagsOf(v), flag); strings.Contains(out, "\n  -"+flag) != takes {
				t.Errorf("the help on %s tells of -%s: %t", v.Name, flag, !takes)
			}
		}
	}
}

func TestEveryVerbIsDocumented(t *testing.T) {
	t.Parallel()
	documented, err := os.ReadFile("../asaas-queue/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range new(program).verbs() {
		if !strings.Contains(string(documented), "\n//	"+v.Name+" ") {
			t.Errorf("%s is not documented", v.Name)
		}
	}
}

// full is a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestOutputThatCannotBeWrittenIsNotDone(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.webhooks()
	for _, args := range [][]string{{"status"}, {"status", "-json"}} {
		p, _, complaints := a.program(nil)
		p.out = full{}
		if status := p.run(t.Context(), append(args, "-sandbox")); status != 1 || !strings.Contains(complaints.String(), "no space left on device") {
			t.Errorf("%v: exit status %d, %q", args, status, complaints)
		}
	}
}

func TestTheVersionIsPrinted(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for _, arg := range []string{"version", "--version"} {
		p, out, _ := a.program(nil)
		if status := p.run(t.Context(), []string{arg}); status != 0 || !regexp.MustCompile(`^asaas-queue \S+\n$`).MatchString(out.String()) {
			t.Errorf("%s: exit status %d, prints %q", arg, status, out)
		}
	}
}

func TestWrongUseExits2AndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why  string
		args []string
		env  map[string]string // set beside what is right
		says string
	}{
		{"no command", nil, nil, "give a verb: asaas-queue help VERB has all about one"},
		{"another command", []string{"repair"}, nil, `there is no verb "repair": asaas-queue help prints them`},
		{"no id", []string{"recover"}, nil, "recover needs the id of one webhook: status prints them"},
		{"two ids", []string{"resume", "a", "b"}, nil, `"b" is too much: asaas-queue help resume prints what it takes`},
		{"an id for status", []string{"status", "a"}, nil, `"a" is too much`},
		{"a flag that does not exist", []string{"status", "-frobnicate"}, nil, "frobnicate"},
		{"-every is 0", []string{"recover", "a", "-every", "0s"}, nil, "it is no time such as 45d, 12h or 5s"},
		{"-handled for another command", []string{"recover", "a", "-handled", "-"}, nil, "flag provided but not defined: -handled: asaas-queue help recover prints the flags"},
		{"-last-event for another command", []string{"rotate", "a", "-last-event", "2026-11-20"}, nil, "flag provided but not defined: -last-event"},
		{"no key", []string{"status"}, map[string]string{"ASAAS_API_KEY": ""}, "ASAAS_API_KEY, with -sandbox: the API key is empty"},
		{"a key of production", []string{"status"}, map[string]string{"ASAAS_API_KEY": "$aact_prod_1"}, "ASAAS_API_KEY, with -sandbox: the API key is not of the environment sandbox, it starts with $aact_prod_"},
		{"no token", []string{"recover", "a", "-yes"}, map[string]string{"ASAAS_WEBHOOK_TOKEN": " "}, "ASAAS_WEBHOOK_TOKEN is not set: set it"},
		{"a base URL that is none", []string{"status"}, map[string]string{"ASAAS_BASE_URL": "asaas"}, "ASAAS_BASE_URL is not the API's address"},
	} {
		a := newAccount(t)
		maps.Copy(a.env, test.env)
		status, out, complaints := a.queue(t, test.args...)
		if status != 2 || out != "" || !strings.Contains(complaints, test.says) {
			t.Errorf("%s: exit status %d, prints %q, %q", test.why, status, out, complaints)
		}
	}
}

func TestAnAsaasThatDoesNotAnswerExits1(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why   string
		fault asaastest.APIFault
		says  string
	}{
		{"a gateway", asaastest.APIPage(http.StatusBadGateway), "it was answered with 502, the answer is HTML"},
		{"trouble", asaastest.APIStatus(http.StatusInternalServerError), "it was answered with 500"},
		{"half an answer", asaastest.APICutJSON, "the answer is not the JSON that it should be"},
		{"a reset", asaastest.APIReset, "there is no answer"},
		{"a key without permission", asaastest.APIForbidden, "the API key has no permission for it"},
	} {
		a := newAccount(t)
		id, _, _, _ := a.webhooks()
		a.wait = atOnce
		for _, args := range [][]string{
			{"status"},
			{"remove-penalty", id, "-yes"},
			{"resume", id, "-yes"},
			{"recover", id, "-yes"},
		} {
			a.fake.InjectAPI(test.fault, test.fault, test.fault) // what only reads is sent three times
			status, out, complaints := a.queue(t, args...)
			if status != 1 || out != "" || !strings.Contains(complaints, test.says) {
				t.Errorf("%s: %v: exit status %d, prints %q, %q", test.why, args, status, out, complaints)
			}
		}
	}
}

func TestAWebhookThatIsNotThereExits3(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for _, command := range []string{"remove-penalty", "resume", "recover"} {
		status, out, complaints := a.queue(t, command, "no-such-id", "-yes")
		if status != 3 || out != "" || !strings.Contains(complaints, "it was answered with 404") || !strings.Contains(complaints, "see the id, the account") {
			t.Errorf("%s: exit status %d, prints %q, %q", command, status, out, complaints)
		}
	}
}
