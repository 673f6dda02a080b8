//go:build long

package readme

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/command"
)

const runningPage = "docs/running.md"

// production serves a fake of Asaas's production. Each request of its API takes a minute of the fake's time.
func production(t *testing.T) (fake *asaastest.Fake, url string) {
	t.Helper()
	fake = asaastest.New()
	fake.APIKey = "$aact_prod_fake"
	fake.Advance(max(0, time.Since(fake.Now())))
	var turn sync.Mutex // the clock has one mover at a time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		turn.Lock()
		defer turn.Unlock()
		fake.Advance(time.Minute)
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(fake.Close)
	t.Cleanup(server.Close)
	return fake, server.URL + "/v3"
}

func TestTheProgramOfThePageOnRunningIsHealthyWithAllItsParts(t *testing.T) {
	t.Parallel()
	_, rest, begins := strings.Cut(byHand(t).text, "\thttp.Handle(")
	rest, _, ends := strings.Cut(rest, "\n}\n")
	if !begins || !ends {
		t.Fatal("the program that is written by hand mounts nothing")
	}
	listening, arrived := make(chan string, 1), make(chan struct{})
	passOn := sync.OnceValue(func() http.Handler {
		return httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: <-listening})
	})
	once := sync.OnceFunc(func() { close(arrived) })
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passOn().ServeHTTP(w, r)
		once()
	}))
	t.Cleanup(shop.Close)
	fake, api := production(t)
	fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: shop.URL + "/webhooks/asaas", Token: token})

	b := byHand(t)
	b.text = strings.NewReplacer(
		"\thttp.Handle("+rest, blocks(t, runningPage, "go")[0].text,
		"import (", "import (\n\t\"github.com/paghooks/paghooks/asaas/webhook\"",
	).Replace(b.text)
	b.text = strings.NewReplacer( // the addresses and the key of this test
		"https://shop.example", shop.URL,
		`os.Getenv("ASAAS_API_KEY")`, `"`+fake.APIKey+`"`,
		"canary :=", "client.BaseURL = \""+api+"\"\ncanary :=",
	).Replace(b.text)
	_, addr, _ := startLogged(t, buildInto(t, t.TempDir(), b), idemtest.URL(t), token)
	listening <- addr
	select {
	case <-arrived:
	case <-time.After(patience):
		t.Fatal("no canary has come")
	}
	for _, check := range []string{"canary", "webhook", "reconcile", "workers"} {
		awaitHealth(t, addr, http.StatusOK, `"`+check+`"`)
	}
}

func TestTheStepsAfterAnOutageRunAsThePagePrintsThem(t *testing.T) {
	t.Parallel()
	database := idemtest.URL(t)
	db, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(context.Background()) })
	exec := func(sql string) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(tables(t))
	_, addr := start(t, build(t), database, token)
	if err := charges.Filled(t.Context(), db, "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	fake, api := production(t)
	id := fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: "http://" + addr + "/webhooks/asaas", Token: token})
	exec(`alter table idem_events rename to mislaid`)
	fake.Emit(asaastest.Event(asaas.EventPaymentReceived, asaastest.Set("payment.externalReference", nil)), asaastest.Event(asaas.EventTransferCreated))
	fake.Advance(24 * time.Hour)
	if !fake.Webhook(id).Interrupted {
		t.Fatal("Asaas has not stopped the queue")
	}
	exec(`alter table mislaid rename to idem_events`)

	commands := t.TempDir()
	run(t, "build", "-o", commands, filepath.Join(root, "idem/cmd/idem"), filepath.Join(root, "asaas/cmd/asaas-queue"))
	for line := range strings.Lines(section(t, runningPage, "## After an outage", "sh")[0]) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.ReplaceAll(strings.TrimSpace(line), " ID", " "+id)
		switch { // nobody is at a terminal
		case strings.Contains(line, " recover "):
			line += " -yes -every 10ms"
		case strings.Contains(line, " requeue"):
			line += " -yes"
		}
		status, said := sh(t, commands, line, "DATABASE_URL="+database, "ASAAS_API_KEY="+fake.APIKey, "ASAAS_BASE_URL="+api, "ASAAS_WEBHOOK_TOKEN="+token)
		if status != 0 && status != command.Attention {
			t.Errorf("%s ends with %d", line, status)
		}
		t.Logf("%s\n%s", line, said)
	}
	if fake.Webhook(id).Interrupted {
		t.Error("the queue is still stopped")
	}
	var newest time.Time
	if err := db.QueryRow(t.Context(), section(t, runningPage, "## After an outage", "sql")[0]).Scan(&newest); err != nil {
		t.Errorf("after the outage no event came: %v", err)
	}
}

// sh runs a line, with the commands in a folder, and returns its exit status and what it printed.
func sh(t *testing.T, commands, line string, env ...string) (status int, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env = append(os.Environ(), append(env, "PATH="+commands+":"+os.Getenv("PATH"))...)
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// typed is a command of this module with a verb, as a document prints it.
var typed = regexp.MustCompile("(?:^|`|/)(idem|asaas-queue|asaas-fake|zeltapay-fake) ([a-z][a-z-]*)( [^`#\n]*)?(?:[`#\n]|$)")

func TestEveryVerbAndFlagThatADocumentPrintsExists(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, path := range map[string]string{
		"idem": "idem/cmd/idem", "asaas-queue": "asaas/cmd/asaas-queue",
		"asaas-fake": "asaas/cmd/asaas-fake", "zeltapay-fake": "zeltapay/cmd/zeltapay-fake",
	} {
		run(t, "build", "-o", filepath.Join(folder, name), filepath.Join(root, path))
	}
	helps := make(map[string]string)
	help := func(words string) string {
		if _, asked := helps[words]; !asked {
			_, helps[words] = sh(t, folder, words)
		}
		return helps[words]
	}
	flag := regexp.MustCompile(` --?([a-z][a-z-]*)`)
	seen := 0
	for _, document := range documents(t) {
		for line := range strings.Lines(whole(read(t, document))) {
			for _, found := range typed.FindAllStringSubmatch(line, -1) {
				name, verb, rest := found[1], found[2], found[3]
				if verb == "help" {
					continue
				}
				seen++
				if !slices.Contains(strings.Fields(help(name+" help")), verb) {
					t.Errorf("%s: %s has no verb %s", document, name, verb)
					continue
				}
				for _, f := range flag.FindAllStringSubmatch(rest, -1) {
					if !strings.Contains(help(name+" help "+verb), "-"+f[1]) {
						t.Errorf("%s: %s %s has no flag -%s", document, name, verb, f[1])
					}
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("the documents print %d commands", seen)
	}
}
