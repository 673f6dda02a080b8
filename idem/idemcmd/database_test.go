package idemcmd

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/command"
)

// A person has several shells, and one of them is production.
func TestWhatChangesSomethingSaysFirstInWhichDatabase(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	config := s.pool.Config().ConnConfig
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(config.User, "hunter2")
	s.url = u.String()
	says := fmt.Sprintf("idem: database %q at %s:%d, user %q, schema %q\n", config.Database, config.Host, config.Port, config.User, s.text(`select current_schema()`))
	acting := 0
	for _, v := range verbs {
		args := []string{v.name}
		switch v.name {
		case "watch":
			args = append(args, "-times", "1")
		case "show", "acknowledge", "discard", "erase":
			args = append(args, "-reason", "x", "bad_2")
		case "rescope":
			args = append(args, "-account", "store-2", "-to-account", "store-3")
		case "stop":
			args = append(args, "1")
		case "readmit": // its secrets are looked for first; no event is set aside
			continue
		}
		p, _, complaints := s.program(args...)
		p.asks, p.Stdin = true, strings.NewReader("n\n")
		p.run(t.Context())
		if strings.HasPrefix(complaints.String(), says) != v.acts || strings.Contains(complaints.String(), "hunter2") {
			t.Errorf("idem %q says\n%swant that it begins with %q: %t", args, complaints, says, v.acts)
		}
		if v.acts {
			acting++
		}
	}
	if acting != 9 {
		t.Errorf("%d verbs change something, and a test", acting)
	}
}

// The schema is the one with the tables, which need not be the first.
func TestTheSchemaIsThatOfTheTables(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	schema := s.text(`select current_schema()`)
	other := schema + "_2"
	s.exec(`create schema ` + other)
	t.Cleanup(func() { s.exec(`drop schema ` + other + ` cascade`) })
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Del("options")
	query.Set("search_path", other+","+schema)
	u.RawQuery = query.Encode()
	s.url = u.String()
	p, _, complaints := s.program("prune", "-dry-run")
	if status := p.run(t.Context()); status != command.Done || !strings.Contains(complaints.String(), fmt.Sprintf("schema %q\n", schema)) {
		t.Errorf("exit status %d, %s", status, complaints)
	}
}
