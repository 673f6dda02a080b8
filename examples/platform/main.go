// Platform is an application with an account at Asaas and a sub-account for each seller: one endpoint, a token and a
// scope for each account, one list of all. docs/sub-accounts.md explains it.
//
//	DATABASE_URL=postgres://localhost/shop go run ./examples/platform accounts.txt
//
// The file has a line for each account: its scope, the variable of the environment that has its API key, and that of
// its webhook's token. It is the file of asaas-queue -accounts.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		log.Fatal("platform: name the file of the accounts")
	}
	accounts, err := read(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, os.Getenv("DATABASE_URL"), accounts); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, database string, accounts list) error {
	if database == "" {
		return errors.New("set DATABASE_URL")
	}
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := idem.Migrate(ctx, pool); err != nil {
		return err
	}
	if err := charges.Migrate(ctx, pool); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, tables); err != nil {
		return err
	}
	events := newEvents(accounts)
	inbox := idem.NewInbox(pool, events)
	watches := webhook.NewWatches(accounts.clients(), settings, events)
	unmatched := &charges.Unmatched{DB: pool, Known: `
		exists (select from orders o where o.scope = c.scope and o.id = c.external_reference)`}

	parts, checks := []idem.Part{inbox, watches}, []health.Part{inbox, watches, unmatched}
	for scope, client := range accounts.clients() {
		daily := &charges.Daily{Client: client, DB: pool, Scope: scope, Orders: paid}
		parts, checks = append(parts, daily), append(checks, daily)
	}

	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/asaas/{account}", inbox)
	mux.Handle("GET /health/webhooks", health.New(checks...))
	server := &http.Server{Addr: cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"), Handler: mux}
	return idem.Serve(ctx, server, parts...)
}

// newEvents returns a dispatcher for all accounts. An event's scope is the account that its
// URL names and its token proves.
func newEvents(accounts list) *asaas.Dispatcher {
	events := asaas.NewDispatcher()
	events.Accounts = func(r *http.Request) ([]idem.Credentials, error) {
		a, ok := accounts.find(r.PathValue("account"))
		if !ok {
			return nil, nil // not one of ours: anybody can ask for any
		}
		return []idem.Credentials{{Scope: a.scope, Secrets: []string{a.token}}}, nil
	}
	events.OnPayment(payment)
	return events
}

// settings are those of the webhook of an account, as asaas-queue apply makes it.
func settings(account string) webhook.Settings {
	return webhook.Settings{Name: "platform", URL: cmp.Or(os.Getenv("PUBLIC_URL"), "https://shop.example") + "/webhooks/asaas/" + account}
}

// account is a line of the list. list has all accounts, in the order of the file.
type (
	account struct{ scope, key, token string }
	list    []account
)

// read reads the list. Keys and tokens are in the environment.
func read(file string) (accounts list, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if len(words) != 3 || os.Getenv(words[2]) == "" {
			return nil, fmt.Errorf("the account %s: give the variables of its key and of its token, and set them", words[0])
		}
		accounts = append(accounts, account{words[0], os.Getenv(words[1]), os.Getenv(words[2])})
	}
	return accounts, nil
}

func (l list) find(scope string) (account, bool) {
	for _, a := range l {
		if a.scope == scope {
			return a, true
		}
	}
	return account{}, false
}

// clients yields a client for each account.
func (l list) clients() iter.Seq2[string, *asaas.Client] {
	keys := func(yield func(scope, key string) bool) {
		for _, a := range l {
			if !yield(a.scope, a.key) {
				return
			}
		}
	}
	environment := cmp.Or(asaas.Environment(os.Getenv("ASAAS_ENVIRONMENT")), asaas.Sandbox)
	return func(yield func(string, *asaas.Client) bool) {
		for scope, client := range asaas.Clients(environment, keys) {
			client.BaseURL = cmp.Or(os.Getenv("ASAAS_BASE_URL"), client.BaseURL) // a fake Asaas
			if !yield(scope, client) {
				return
			}
		}
	}
}
