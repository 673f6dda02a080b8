package queue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// everyID stands for each webhook whose queue is held up.
const everyID = "all"

// listed is the account of a list that a verb is at.
type listed struct {
	isAny   bool   // there is a list
	account string // "" for the one without a scope
	file    string // of -accounts
	token   string // the name of the variable with its webhook's token; "" if the list has none
}

// name returns the account as it is typed.
func (l listed) name() string { return cmp.Or(l.account, "-") }

// flags returns the flags that lead to the account again.
func (l listed) flags() (flags []string) {
	if l.file != "" {
		flags = append(flags, "-accounts", l.file)
	}
	if l.isAny {
		flags = append(flags, "-account", l.name())
	}
	return flags
}

// in returns a URL with the account in the place of {account}.
func (l listed) in(url string) string {
	if !l.isAny {
		return url
	}
	if l.account == "" {
		url = strings.ReplaceAll(url, "/{account}", "")
	}
	return strings.ReplaceAll(url, "{account}", l.account)
}

// named returns a value, an object as JSON, with the account as its first member.
func (l listed) named(value any) any {
	object, err := json.Marshal(value)
	name, _ := json.Marshal(l.account) // a text
	if rest, ok := bytes.CutPrefix(object, []byte("{")); ok && err == nil {
		separator := ","
		if bytes.HasPrefix(rest, []byte("}")) {
			separator = ""
		}
		return json.RawMessage(fmt.Sprintf(`{"account":%s%s%s`, name, separator, rest))
	}
	return value
}

func (l listed) tokenVariable() string {
	if !l.isAny {
		return "ASAAS_WEBHOOK_TOKEN"
	}
	return cmp.Or(l.token, "the variable of the token, the third word of the account's line,")
}

// token returns the token of the webhook, from the environment.
func (p *program) token() string {
	name := "ASAAS_WEBHOOK_TOKEN"
	if p.listed.isAny { // each account has its own
		name = p.listed.token
	}
	token := strings.TrimSpace(p.getenv(name))
	if token == "" && p.listed.isAny && p.WebhookOf != nil {
		token = p.settings().Token
	}
	return token
}

// settings returns those of the account's webhook that the program has.
func (p *program) settings() webhook.Settings {
	if p.listed.isAny && p.WebhookOf != nil {
		return p.WebhookOf(p.listed.account)
	}
	return p.Webhook
}

// line is a line of the file of accounts.
type line struct{ account, key, token string }

// list returns the accounts; nil if there is no list.
func (p *program) list() (iter.Seq2[listed, *asaas.Client], error) {
	file := p.accounts
	if file == "" && p.Accounts == nil {
		file = p.getenv("ASAAS_ACCOUNTS")
	}
	if file == "" && p.Accounts == nil {
		if p.account != "" {
			return nil, command.Usage("-account is of a list of accounts: give that by -accounts")
		}
		return nil, nil
	}
	if p.scope != "" {
		return nil, command.Usage("-scope is that of one key: of a list, an account's name is its scope, see -account")
	}
	if file == "" {
		return func(yield func(listed, *asaas.Client) bool) {
			for account, client := range p.Accounts {
				if !yield(listed{isAny: true, account: account}, client) {
					return
				}
			}
		}, nil
	}
	lines, err := readAccounts(file)
	if err != nil {
		return nil, err
	}
	environment := asaas.Production
	if p.sandbox {
		environment = asaas.Sandbox
	}
	return func(yield func(listed, *asaas.Client) bool) {
		for _, l := range lines {
			one := func(yield func(string, string) bool) { yield(l.account, p.getenv(l.key)) }
			for _, client := range asaas.Clients(environment, one) {
				if !yield(listed{isAny: true, account: l.account, file: p.accounts, token: l.token}, client) {
					return
				}
			}
		}
	}, nil
}

func readAccounts(file string) (lines []line, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, command.Usage("-accounts: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, command.Usage("-accounts: %w", err)
	}
	n := 0
	for text := range strings.Lines(string(text)) {
		n++
		words := strings.Fields(text)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 2 || len(words) > 3 || slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "$") }) {
			return nil, command.Usage("%s:%d: give an account's name, the name of the variable with its API key, and that of the variable with its webhook's token; no key and no token stands in the file", file, n)
		}
		l := line{account: words[0], key: words[1]}
		if len(words) == 3 {
			l.token = words[2]
		}
		if l.account == "-" {
			l.account = ""
		}
		if slices.ContainsFunc(lines, func(other line) bool { return other.account == l.account || other.key == l.key }) {
			return nil, command.Usage("%s:%d: the account or its key is there twice", file, n)
		}
		lines = append(lines, l)
	}
	if lines == nil {
		return nil, command.Usage("%s has no account: write a line for each", file)
	}
	return lines, nil
}

// overAccounts runs a verb for each account, one after the other. What fails for one is said, and the next one follows.
func (p *program) overAccounts(ctx context.Context, accounts iter.Seq2[listed, *asaas.Client], v command.Verb, run func(context.Context) error) error {
	if accounts == nil {
		return nil
	}
	isOne := v.Words == "ID" && p.id != everyID
	id, noPix := p.id, p.noPix
	worst, seen, failed := command.Nothing, 0, 0
	for at, client := range accounts {
		if p.account != "" && at.name() != p.account {
			continue
		}
		seen++
		p.listed, p.scope, p.id, p.noPix = at, at.account, id, noPix
		err := p.use(client)
		if err == nil && isOne {
			if has, looked := p.has(ctx, client, id); !has {
				if looked != nil {
					failed++
					p.complainOf(at, looked)
				}
				continue
			}
		}
		if err == nil {
			p.head(at)
			err = run(ctx)
		}
		status, said := command.StatusOf(err)
		switch {
		case status == command.Misused && seen == 1: // the command line is wrong, for each of them
			return err
		case ctx.Err() != nil:
			return err
		case err != nil && !said:
			failed++
			p.complainOf(at, err)
		}
		if rank(status) > rank(worst) {
			worst = status
		}
		if isOne {
			break
		}
	}
	p.listed = listed{}
	switch {
	case seen == 0 && p.account != "":
		return command.Usage("there is no account %q in the list", p.account)
	case isOne && worst == command.Nothing && failed == 0:
		return command.Error(command.Nothing, fmt.Errorf("no account of the list has the webhook %s: status prints them", id))
	case failed > 0:
		worst = command.Failed
	}
	if v.Name == "status" || v.Name == "recover" {
		p.id = ""
		if err := p.owed(ctx); err != nil && rank(worst) < rank(command.Attention) {
			return err
		}
	}
	if worst == command.Done || worst == command.Nothing {
		return nil
	}
	return command.Said(worst)
}

// rank orders exit statuses by what a person has to look at first.
func rank(status int) int {
	return slices.Index([]int{command.Nothing, command.Done, command.Attention, command.Misused, command.Failed}, status)
}

// head prints the name of the account that the next lines are about. As JSON, each object has it.
func (p *program) head(at listed) {
	if !p.json {
		p.print("== " + terminal.Clean(at.name()))
	}
}

func (p *program) complainOf(at listed, err error) {
	text := p.explain(err)
	if !at.isAny {
		fmt.Fprintf(p.complaints, "%s: %s\n", p.Name, terminal.Text(text))
		return
	}
	if p.json {
		_ = terminal.PrintJSON(p.complaints, map[string]string{"account": at.account, "error": text}) // the exit status says it, too
		return
	}
	fmt.Fprintf(p.complaints, "%s: %s: %s\n", p.Name, terminal.Clean(at.name()), terminal.Text(text))
}

// has reports whether the account has a webhook.
func (p *program) has(ctx context.Context, client *asaas.Client, id string) (bool, error) {
	_, err := client.Webhook(ctx, id)
	if e, ok := errors.AsType[*asaas.APIError](err); ok && e.Status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// recoverAll recovers each webhook of the account whose queue is held up.
func (p *program) recoverAll(ctx context.Context) error {
	var held []string
	for w, err := range p.client.Webhooks(ctx) {
		if err != nil {
			return err
		}
		if stateOf(w).isHeldUp() || !w.Enabled.Or(true) {
			held = append(held, w.ID)
		}
	}
	if len(held) == 0 {
		p.tell(step{everyID, "none", 0, "no queue is held up"})
		return p.owed(ctx)
	}
	var worst error
	for _, id := range held {
		p.id = id
		err := p.recover(ctx)
		if status, said := command.StatusOf(err); !said && ctx.Err() == nil {
			p.complainOf(p.listed, fmt.Errorf("%s: %w", id, err))
			worst = command.Said(command.Failed)
		} else if status != command.Done && worst == nil {
			worst = err
		}
	}
	return worst
}
