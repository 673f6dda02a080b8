package idemcmd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

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
		case "show", "acknowledge", "discard", "erase", "rerun":
			args = append(args, "-reason", "x", "bad_2")
		case "console": // which it refuses to serve there
			args = append(args, "-listen", "0.0.0.0:0")
		case "pause":
			args = append(args, "-for", "2h", "-reason", "x")
		case "rescope":
			args = append(args, "-account", "store-2", "-to-account", "store-3")
		case "stop":
			args = append(args, "1")
		case "readmit": // its secrets are looked for first; no event is set aside
			continue
		}
		p, _, complaints := s.program(args...)
		p.command.Asks, p.command.In = true, strings.NewReader("n\n")
		p.run(t.Context())
		if strings.HasPrefix(complaints.String(), says) != v.acts || strings.Contains(complaints.String(), "hunter2") {
			t.Errorf("idem %q says\n%swant that it begins with %q: %t", args, complaints, says, v.acts)
		}
		if v.acts {
			acting++
		}
	}
	if acting != 12 {
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

// Since Postgres 15 an ordinary role may not create tables. The verbs that change events are typed by one in each of
// their tests.
func TestARoleThatMayNotCreateTablesSeesEverything(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.role("")
	s.prebuilt()
	s.exec(`update idem_events set conflict_at = now() where event like '%evt_1'`)
	for _, c := range []step{
		{args: "stats", out: "…notes…"},
		{args: "list", out: "…bad_2…"},
		{args: "show bad_2 -payload", out: `…"order":"pay_2"…`, effect: "ana reveal: shown"},
		{args: "show -entity pay_2", out: "…bad_2: It is parked…"},
		{args: "conflicts -json", out: "…evt_1…"},
		{args: "blocked", out: "…pay_2…"},
		{args: "migrate", out: "All migrations are applied.\n"},
		{args: "audit", out: "…reveal…"},
	} {
		s.step(c)
	}
	if _, out, complaints := s.idem("doctor", "-all"); !strings.Contains(out, "this role may not see") || strings.Contains(out, "rights") || complaints != "" {
		t.Errorf("doctor: %s, %s", out, complaints)
	}
	s.exec(`revoke insert on idem_audit from ` + s.text(`select current_schema()`) + `_app`)
	s.step(step{args: "requeue -yes evt_7", status: command.Failed, says: "idem: …permission denied for table idem_audit…idem doctor says which rights are missing…"})
	if status, out, _ := s.idem("doctor"); status != command.Attention || !strings.Contains(out, "may not insert on idem_audit") {
		t.Errorf("doctor: exit status %d, %s", status, out)
	}
}

// freezeAt returns the address of a way to the server that passes nothing on any more once a statement has this text.
func (s *shop) freezeAt(text string) string {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = l.Close() })
	config := s.pool.Config().ConnConfig
	network, server := pgconn.NetworkAddress(config.Host, config.Port)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial(network, server)
			if err != nil {
				_ = client.Close()
				continue
			}
			context.AfterFunc(s.Context(), func() { _, _ = client.Close(), behind.Close() })
			go func() { _, _ = io.Copy(client, behind) }()
			go func() {
				for some := make([]byte, 1<<16); ; {
					n, err := client.Read(some)
					if err != nil || strings.Contains(string(some[:n]), text) {
						return
					}
					if _, err := behind.Write(some[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
