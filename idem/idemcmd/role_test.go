package idemcmd

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/command"
)

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
		{[]string{"watch", "-times", "1"}, false, "parked 3"},
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
	if _, out, complaints := s.idem("doctor"); !strings.Contains(out, "this role may not see") || strings.Contains(out, "rights") || complaints != "" {
		t.Errorf("doctor: %s, %s", out, complaints)
	}
	s.exec(`revoke insert on idem_audit from ` + role)
	s.wantSays(command.Failed, "permission denied for table idem_audit", "requeue", "-yes", "evt_7")
	s.wantSays(command.Failed, "idem doctor says which rights are missing", "requeue", "-yes", "evt_7")
	if status, out, _ := s.idem("doctor"); status != command.Attention || !strings.Contains(out, "may not insert on idem_audit") {
		t.Errorf("doctor: exit status %d, %s", status, out)
	}
}
