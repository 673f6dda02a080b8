package queue

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas/asaastest"
)

// What the library's names look like, in the words of an operator.
var libraryName = regexp.MustCompile(`\b(asaas|idem)[.:] ?[A-Z]|\b[A-Z][a-z]+[A-Z]|[a-z]\(|\b(Webhook|Dispatcher|Inbox|Probe)\b`)

func TestAFailureIsJSONOnStderrAndNamesNothingOfTheLibrary(t *testing.T) {
	t.Parallel()
	faults := map[string]asaastest.APIFault{
		"a gateway":            asaastest.APIPage(http.StatusBadGateway),
		"trouble":              asaastest.APIStatus(http.StatusInternalServerError),
		"a wrong key":          asaastest.APIStatus(http.StatusUnauthorized),
		"a redirect":           asaastest.APIStatus(http.StatusPermanentRedirect),
		"nothing there":        asaastest.APIStatus(http.StatusNotFound),
		"half an answer":       asaastest.APICutJSON,
		"a reset":              asaastest.APIReset,
		"without permission":   asaastest.APIForbidden,
		"another JSON":         func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = w.Write([]byte("{}")) },
		"nothing that is told": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = w.Write([]byte(`{"id":"a"}`)) },
	}
	check := func(t *testing.T, why string, a *account, args ...string) {
		t.Helper()
		status, out, complaints := a.queue(t, append(args, "-json")...)
		var got struct {
			Error  string
			Status int
		}
		err := json.Unmarshal([]byte(complaints), &got)
		if status == 0 || err != nil || got.Status != status || got.Error == "" || strings.Contains(out, got.Error) {
			t.Errorf("%s: %v: exit status %d, prints %q, %q", why, args, status, out, complaints)
		}
		if name := libraryName.FindString(got.Error); name != "" {
			t.Errorf("%s: %v names %q: %s", why, args, name, got.Error)
		}
	}
	for why, fault := range faults {
		for _, command := range []string{"status", "remove-penalty", "resume", "recover"} {
			a := newAccount(t)
			_, _, penalized, _ := a.webhooks()
			a.fake.InjectAPI(fault, fault, fault) // what only reads is sent three times
			a.wait = atOnce
			args := []string{command}
			if command != "status" {
				args = append(args, penalized, "-yes")
			}
			if why == "nothing that is told" && command != "recover" {
				continue // is no failure
			}
			check(t, why, a, args...)
		}
	}
	for why, change := range map[string]func(a *account){
		"a key of production":  func(a *account) { a.env["ASAAS_API_KEY"] = "$aact_prod_1" },
		"no key":               func(a *account) { a.env["ASAAS_API_KEY"] = "" },
		"half a key":           func(a *account) { a.env["ASAAS_API_KEY"] = "hmlg_1" },
		"no token":             func(a *account) { a.env["ASAAS_WEBHOOK_TOKEN"] = "" },
		"no address":           func(a *account) { a.env["ASAAS_BASE_URL"] = "asaas" },
		"an address of nobody": func(a *account) { a.env["ASAAS_BASE_URL"] = "http://127.0.0.1:1/v3" },
		"http":                 func(a *account) { a.env["ASAAS_BASE_URL"] = "ftp://a" },
	} {
		a := newAccount(t)
		_, _, penalized, _ := a.webhooks()
		change(a)
		check(t, why, a, "recover", penalized, "-yes")
	}
	a := newAccount(t)
	check(t, "no such command", a, "repair")
	check(t, "no such flag", a, "status", "-frobnicate")
}

func TestACanaryThatFailsNamesNothingOfTheLibrary(t *testing.T) {
	t.Parallel()
	for _, answer := range []struct {
		status int
		body   string
	}{
		{200, "ok"},
		{204, ""},
		{308, ""},
		{401, `{"reason":"wrong_token"}`},
		{401, ""},
		{403, ""},
		{404, ""},
		{502, "<html>"},
		{502, ""},
		{503, ""},
		{503, `{"dry_run":"parked"}`},
		{503, `{"dry_run":"retrying"}`},
		{503, `{"dry_run":"unhandled"}`},
		{503, `{"dry_run":"new"}`},
		{401, `{"reason":"address_not_allowed"}`},
		{401, `{"reason":"unknown_account"}`},
		{503, `{"reason":"not_configured"}`},
	} {
		a := newAccount(t)
		server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Idem-Dry-Run") == "" {
				answer.status = http.StatusServiceUnavailable
			}
			w.WriteHeader(answer.status)
			_, _ = w.Write([]byte(answer.body))
		})
		id := a.receiver(t, server)
		status, _, complaints := a.queue(t, "recover", id, "-yes")
		text := strings.ReplaceAll(complaints, "Idem-Dry-Run", "")
		if name := libraryName.FindString(text); status != 1 || name != "" || !strings.Contains(text, "nothing was changed: the way to http://127.0.0.1:") {
			t.Errorf("%d %s: exit status %d, names %q: %s", answer.status, answer.body, status, name, complaints)
		}
	}
}

func TestASignalSaysWhatWasChanged(t *testing.T) {
	t.Parallel()
	terminated := errors.New("terminated signal received")
	for _, test := range []struct {
		why, at string // the line after which it comes
		args    []string
		says    string
	}{
		{"before anything", "", []string{"recover"}, "nothing was changed: nothing was sent: terminated signal received\n"},
		{"while it is watched", "the penalty is removed", []string{"recover"}, "not recovered: the penalty was removed: it was interrupted with 7 failures counted, look again: terminated signal received\n"},
		{"before the one change", "", []string{"remove-penalty"}, "nothing was changed: nothing was sent: terminated signal received\n"},
		{"when nothing is to be changed", "", []string{"status"}, "asaas-queue: nothing was sent: terminated signal received\n"},
	} {
		a := newAccount(t)
		id, broken := a.application(t, time.Hour)
		broken.Store(false)
		ctx, cancel := context.WithCancelCause(t.Context())
		a.printed = func(line string) {
			if strings.Contains(line, test.at) {
				cancel(terminated)
			}
		}
		if test.at == "" {
			cancel(terminated)
		}
		p, _, complaints := a.program(nil)
		args := append([]string{"-sandbox"}, test.args...)
		if test.args[0] != "status" {
			args = append(args, "-yes", id)
		}
		if status := p.run(ctx, args); status != 130 || !strings.HasSuffix(complaints.String(), test.says) {
			t.Errorf("%s: exit status %d, %q, want %q", test.why, status, complaints, test.says)
		}
		cancel(nil)
	}
}

// silent is a terminal at which nobody types.
type silent struct{ asked chan struct{} }

func (s silent) Read([]byte) (int, error) {
	close(s.asked)
	select {}
}

func TestASignalEndsAQuestion(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	_, _, penalized, _ := a.webhooks()
	nothing := ""
	p, _, complaints := a.program(&nothing)
	in := silent{make(chan struct{})}
	p.in = in
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-in.asked; cancel(errors.New("hangup signal received")) }()
	status := p.run(ctx, []string{"-sandbox", "remove-penalty", penalized})
	if status != 130 || !strings.HasSuffix(complaints.String(), "nothing was changed: hangup signal received\n") || a.changes() != nil {
		t.Errorf("exit status %d, %q, changes %v", status, complaints, a.changes())
	}
}
