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

// Since Postgres 15 an ordinary role may not create tables. All verbs work on
// what is migrated.
func TestARoleThatMayNotCreateTablesCanDoEverything(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	schema := s.text(`select current_schema()`)
	role := schema + "_app"
	s.exec(`create role ` + role + `; grant usage on schema ` + schema + ` to ` + role + `;
		grant select, insert, update, delete on all tables in schema ` + schema + ` to ` + role)
	t.Cleanup(func() {
		if _, err := s.pool.Exec(context.Background(), `drop owned by `+role+`; drop role `+role); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery += "&role=" + role
	s.url = u.String()
	handlers := s.receivers
	s.exec(`update idem_events set conflict_at = now() where event like '%evt_1'`)
	if status, _, complaints := s.idem("prune"); status != command.Done { // the next one forgets
		t.Fatal(complaints)
	}
	s.exec(`update idem_prunes set ran_at = ran_at - interval '1 day'`)
	for _, c := range []struct {
		args  []string
		built bool // with handlers
		says  string
	}{
		{[]string{"stats"}, false, "notes"},
		{[]string{"list"}, false, "bad_2"},
		{[]string{"show", "bad_2", "-payload"}, false, `"order":"pay_2"`},
		{[]string{"show", "-entity", "pay_2"}, false, "bad_2: It is parked"},
		{[]string{"conflicts", "-json"}, false, "evt_1"},
		{[]string{"blocked"}, false, "pay_2"},
		{[]string{"requeue", "-yes", "bad_2"}, false, "1 event of notes: requeued"},
		{[]string{"replay", "-yes", "bad_5&77"}, true, "1 done"},
		{[]string{"replay", "-dry-run", "bad_6"}, true, "1 done"},
		{[]string{"discard", "bad_6", "-yes", "-reason", "x"}, false, "1 event of notes: discarded"},
		{[]string{"prune", "-retention", "5d", "-allow-processing-twice", "-yes"}, false, "1 event of notes: forgotten"},
		{[]string{"migrate"}, false, "All migrations are applied."},
		{[]string{"audit"}, false, "reveal"},
	} {
		s.prebuilt()
		if c.built {
			s.receivers = handlers
		}
		status, out, complaints := s.idem(c.args...)
		if status != command.Done || !strings.Contains(out, c.says) {
			t.Errorf("idem %q: exit status %d, %s, %s", c.args, status, out, complaints)
		}
	}
	s.prebuilt()
	if _, out, complaints := s.idem("doctor", "-all"); !strings.Contains(out, "this role may not see") || strings.Contains(out, "rights") || complaints != "" {
		t.Errorf("doctor: %s, %s", out, complaints)
	}
	s.exec(`revoke insert on idem_audit from ` + role)
	s.wantSays(command.Failed, "permission denied for table idem_audit", "requeue", "-yes", "evt_7")
	s.wantSays(command.Failed, "idem doctor says which rights are missing", "requeue", "-yes", "evt_7")
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
