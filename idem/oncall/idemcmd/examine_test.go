package idemcmd

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/testkit"
)

// findings runs doctor.
func (s *shop) findings() (all []doctor.Finding) {
	s.Helper()
	_, out, complaints := s.idem("doctor", "-json")
	if complaints != "" {
		s.Fatal(complaints)
	}
	for line := range strings.Lines(out) {
		var f doctor.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			s.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

// news returns what doctor finds and has not found before.
func (s *shop) news(before []doctor.Finding) []doctor.Finding {
	s.Helper()
	return slices.DeleteFunc(s.findings(), func(f doctor.Finding) bool {
		return slices.ContainsFunc(before, func(b doctor.Finding) bool { return b.Check == f.Check && b.Problem == f.Problem })
	})
}

// follow types a command: of idem, with a yes, else in psql.
func (s *shop) follow(text string) {
	s.Helper()
	if args, ok := strings.CutPrefix(text, "idem "); ok {
		s.types = "y\n"
		status, out, complaints := s.idem(strings.Fields(args)...)
		if s.types = ""; status != command.Done {
			s.Fatalf("%s: exit status %d, %s%s", text, status, out, complaints)
		}
		return
	}
	for statement := range strings.SplitSeq(text, "; ") {
		s.exec(statement)
	}
}

// fail stores events, which a handler fails to process, in an application whose workers are alive.
func (s *shop) fail(lines ...string) {
	s.Helper()
	s.inbox = receiver(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })(s.pool).(*idem.Inbox)
	s.accept(lines...)
	testkit.KeepAlive(s, s.pool, "notes")
}

// deploy fixes the handler.
func (s *shop) deploy() { s.inbox = receiver(pay)(s.pool).(*idem.Inbox) }

// store stores an event that no worker takes.
func (s *shop) store(id string) {
	s.Helper()
	if o, err := s.inbox.Accept(s.Context(), idem.Event{ID: id, Type: "paid", Key: id, Payload: []byte(`{"id":"` + id + `"}`)}); o != idem.Pending || err != nil {
		s.Fatal(o, err)
	}
}

// hold executes a statement in another session, and leaves its transaction open.
func (s *shop) hold(sql string) {
	s.Helper()
	conn, err := pgx.ConnectConfig(s.Context(), s.pool.Config().ConnConfig)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(s.Context(), "begin; "+sql); err != nil {
		s.Fatal(err)
	}
	s.pid = conn.PgConn().PID()
}

// role has the command run as an ordinary role, with all rights on the tables but those that are taken.
func (s *shop) role(taken string) {
	s.Helper()
	schema := s.text(`select current_schema()`)
	role := schema + "_app"
	s.exec(`create role ` + role + `; grant usage on schema ` + schema + ` to ` + role + `;
		grant select, insert, update, delete on all tables in schema ` + schema + ` to ` + role + `;` + strings.ReplaceAll(taken, "ROLE", role))
	s.Cleanup(func() {
		if _, err := s.pool.Exec(context.Background(), `drop owned by `+role+`; drop role `+role); err != nil {
			s.Error(err)
		}
	})
	u, err := url.Parse(s.url)
	if err != nil {
		s.Fatal(err)
	}
	u.RawQuery += "&role=" + role
	s.url = u.String()
}

func TestDoctorSaysWhatTheProgramSaysOfItself(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("bad_1 paid pay_1")
	for _, c := range []struct {
		why    string
		checks []check.Result
		status int
		first  string // line of the program's, "" for none
	}{
		{"all is well", []check.Result{{Source: "notes", Name: "refused", Healthy: true}}, http.StatusOK, ""},
		{
			"a token was changed on one side",
			[]check.Result{{Source: "notes", Name: "refused", Says: "5 deliveries have the same wrong token"}},
			http.StatusServiceUnavailable, "error    refused: notes: 5 deliveries have the same wrong token\n",
		},
		{
			"the webhook is disabled",
			[]check.Result{{Source: "notes", Name: "webhook", Says: "the webhook is disabled: asaas-queue enable wh_1"}},
			http.StatusServiceUnavailable, "error    webhook: notes: the webhook is disabled: asaas-queue enable wh_1\n",
		},
		{
			"strangers could send them",
			[]check.Result{{Source: "notes", Name: "refused", Healthy: true, Warning: true, Says: "2 had the same wrong token", Remedy: "see the log"}},
			http.StatusOK, "warning  refused: notes: 2 had the same wrong token\n",
		},
		{
			"its queue is stopped, and so nothing comes",
			[]check.Result{{Source: "notes", Name: "silence", Says: "the last came an hour ago"}, {Source: "notes", Name: "webhook", Says: "it is stopped"}},
			http.StatusServiceUnavailable, "error    webhook: notes: it is stopped\n",
		},
		{"what the database says, too", []check.Result{{Source: "notes", Name: "parked", Says: "1 event is parked"}}, http.StatusServiceUnavailable, ""},
		{"what follows from that", []check.Result{{Source: "notes", Name: "standing", Says: "1 waits"}}, http.StatusServiceUnavailable, ""},
		{"another page answers", nil, http.StatusNotFound, "error    health: the program does not say how it is"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_ = json.NewEncoder(w).Encode(health.Report{Checks: c.checks})
		}))
		status, out, _ := s.idem("doctor", "-health", server.URL)
		server.Close()
		if status != command.Attention || !strings.Contains(out, "error    parked: notes: 1 event is parked") || c.first != "" && !strings.Contains(out, c.first) ||
			c.first == "" && strings.Contains(out, server.URL) || strings.Contains(out, "silence") {
			t.Errorf("%s: exit status %d, %s", c.why, status, out)
		}
	}
	if _, out, _ := s.idem("doctor", "-health", "http://127.0.0.1:1/health"); !strings.Contains(out, "error    health: the program does not say how it is") {
		t.Error(out)
	}
}

func TestADatabaseThatDoesNotAnswerIsAFinding(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.url = "postgres://u:hunter2@127.0.0.1:1/shop"
	status, out, complaints := s.idem("doctor")
	if status != command.Attention || !strings.HasPrefix(out, "error    connection: the database does not answer") || strings.Contains(out+complaints, "hunter2") {
		t.Errorf("exit status %d, %s%s", status, out, complaints)
	}
}

// Somebody who types the name of the database wrong is not told that deliveries fail.
func TestAnAddressThatPostgresRefusesIsNotADatabaseThatIsDown(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/no_such_database"
	s.url = u.String()
	status, out, _ := s.idem("doctor")
	if status != command.Attention || !strings.HasPrefix(out, "error    connection: the database answers, and refuses this address: nothing is known of the events") || !strings.Contains(out, "no_such_database") {
		t.Errorf("exit status %d, %s", status, out)
	}
}

func TestAServerThatRefusesAConnectionIsNotCalledAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		answer pgproto3.ErrorResponse
		wants  []string
	}{
		{
			"PgBouncer, to options=-csearch_path and to search_path in the address",
			pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: options"},
			[]string{"error    connection: the database answers, and refuses this address", "unsupported startup parameter: options", "set it for the role, as docs/postgres.md shows"},
		},
		{
			"all connections are in use",
			pgproto3.ErrorResponse{Severity: "FATAL", Code: "53300", Message: `too many connections for role "shop"`},
			[]string{"error    connection: the database has no connection left for this user", `too many connections for role "shop"`, "fewer than max_connections"},
		},
	} {
		server, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		go func() {
			for {
				conn, err := server.Accept()
				if err != nil {
					return
				}
				backend := pgproto3.NewBackend(conn, conn)
				if _, err := backend.ReceiveStartupMessage(); err == nil {
					backend.Send(&c.answer)
					_ = backend.Flush()
				}
				_ = conn.Close()
			}
		}()
		s := &shop{T: t, url: "postgres://shop@" + server.Addr().String() + "/shop?sslmode=disable&options=-csearch_path%3Dwebhooks"}
		for _, want := range c.wants {
			if status, out, _ := s.idem("doctor"); status != command.Attention || !strings.Contains(out, want) {
				t.Errorf("%s: exit status %d, %s\nwant %s", c.reason, status, out, want)
			}
		}
	}
}

// Each event has another stack.
func TestDoctorCountsPanicsByTheirFirstLine(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.exec(`update idem_events set last_error = 'panic: no order' || E'\n\ngoroutine ' || event where state = 'parked'`)
	if _, out, _ := s.idem("doctor"); !strings.Contains(strings.Join(strings.Fields(out), " "), "; last error of 3: panic: no order do:") {
		t.Error(out)
	}
}

func TestHintsAreForThoseWhoAskForThem(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const hint = "a transaction may stay idle without limit"
	if _, out, _ := s.idem("doctor"); strings.Contains(out, hint) || !strings.Contains(out, "more with idem doctor -all.") {
		t.Error(out)
	}
	if _, out, _ := s.idem("doctor", "-all"); !strings.Contains(out, hint) {
		t.Error(out)
	}
}

func TestStatsShowsWhatFailsAndWhoWorks(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.fail("evt_1 paid pay_1", "evt_2 paid pay_2")
	_, out, _ := s.idem("stats")
	if text := strings.Join(strings.Fields(out), " "); !strings.HasPrefix(text, "SOURCE WORKERS PENDING FAILING ") || !regexp.MustCompile(` notes 1 2 \([^)]*\) 2 \([^)]*\) 0 `).MatchString(text) || !strings.Contains(out, "run: idem requeue -source notes -state pending -failed") {
		t.Error(out)
	}
}

func TestWhatDoctorSaysToRunTheSameCommandTakes(t *testing.T) {
	t.Parallel()
	for reason, prepare := range map[string]func(*shop){
		"with handlers":                      func(*shop) {},
		"prebuilt, and no workers are alive": (*shop).prebuilt,
	} {
		s := newShop(t)
		s.badNight()
		prepare(s)
		_, out, _ := s.idem("doctor")
		ran := 0
		for line := range strings.Lines(out) {
			typed, ok := strings.CutPrefix(strings.TrimSpace(line), "run: idem ")
			if !ok {
				continue
			}
			ran++
			verb, _, _ := strings.Cut(typed, " ")
			if slices.Contains([]string{"requeue", "replay"}, verb) {
				if status, _, complaints := s.idem(append(strings.Fields(typed), "-yes")...); status == command.Misused {
					t.Errorf("%s: idem %s: %s", reason, typed, complaints)
				}
			}
		}
		if ran == 0 && !strings.Contains(out, "with your handlers") {
			t.Errorf("%s: it says of nothing what to do: %s", reason, out)
		}
	}
}
