package queue

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// Main runs the command with the program's arguments, and exits.
func (c *Command) Main() {
	p := &program{
		Command: *c, getenv: os.Getenv, stateDir: stateDir(), zone: time.Local,
		in: os.Stdin, out: os.Stdout, complaints: os.Stderr,
		asks: terminal.Is(os.Stdin) && terminal.Is(os.Stderr), width: terminal.Width(os.Stdout),
	}
	command.Main(func(ctx context.Context) int { return p.run(ctx, os.Args[1:]) })
}

// stateDir is the user's cache, or else a folder of this user's for the time
// being.
func stateDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return filepath.Join(os.TempDir(), fmt.Sprintf("paghooks-%d", os.Getuid()))
	}
	return filepath.Join(dir, "paghooks")
}

// run executes the command line, and returns the exit status.
func (p *program) run(ctx context.Context, args []string) int {
	p.command = p.grammar(ctx)
	return p.command.Run(ctx, args)
}

// grammar returns the verbs, and the flags of each.
func (p *program) grammar(ctx context.Context) *command.Command {
	c := &command.Command{
		Name: cmp.Or(p.Name, "asaas-queue"), Variables: variables, Explain: func(err error) string { return p.told(ctx, err) },
		In: p.in, Out: p.out, Err: p.complaints, Asks: p.asks, Width: p.width,
	}
	c.Flags = []command.Flags{c.JSON(&p.json, "print one JSON object per line"), p.sandboxed}
	for n := range verbs {
		c.Verbs = append(c.Verbs, p.bind(&verbs[n]))
	}
	return c
}

// bind returns a verb of this program.
func (p *program) bind(v *action) command.Verb {
	c := command.Verb{Name: v.name, About: v.about, More: v.more, Variables: append([]string{"ASAAS_API_KEY", "ASAAS_BASE_URL"}, v.env...)}
	if v.isAboutOne {
		c.Words, c.Needs = "ID", "the id of one webhook: status prints them"
	}
	c.Flags = []command.Flags{func(f *flag.FlagSet) {
		for _, name := range v.flags {
			p.add(f, name)
		}
	}}
	c.Run = func(ctx context.Context, words []string) error {
		p.verb, p.id = &v.verb, strings.Join(words, "")
		if err := p.connect(); err != nil {
			return err
		}
		err := v.run(p, ctx)
		if e, ok := errors.AsType[*asaas.APIError](err); ok && e.Status == http.StatusNotFound && v.isAboutOne {
			return command.Error(command.Nothing, err)
		}
		return err
	}
	return c
}

// connect makes the client.
func (p *program) connect() error {
	environment := asaas.Production
	if p.sandbox {
		environment = asaas.Sandbox
	}
	key := p.getenv("ASAAS_API_KEY")
	if err := p.checkEnvironment(key); err != nil {
		return err
	}
	client, err := asaas.NewClient(environment, key)
	if err != nil {
		return command.Usage("ASAAS_API_KEY: %w", err)
	}
	if base := p.getenv("ASAAS_BASE_URL"); base != "" {
		if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return command.Usage("ASAAS_BASE_URL is not the API's address: give one such as https://api.asaas.com/v3")
		}
		client.BaseURL = base
	}
	client.Poll, client.StateDir, client.Wait = p.every, p.stateDir, p.wait
	p.client = client
	return nil
}
