package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem"
)

// A handler that returns what Postgres says, or prints all of it, names nobody by that.
func TestWhatPostgresQuotesOfARowIsInNoErrorThatIsStoredLoggedOrObserved(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.exec(`create table people (email text unique, age int, constraint adult check (age > 17)); insert into people values ('` + secret + `', 30)`)
	statements := map[string]func(context.Context, pgx.Tx) error{
		"unique": func(ctx context.Context, tx pgx.Tx) error {
			return runSQL(ctx, tx, `insert into people values ($1)`, secret)
		},
		"check": func(ctx context.Context, tx pgx.Tx) error {
			return runSQL(ctx, tx, `insert into people values ($1 || 'x', 3)`, secret)
		},
		"number": func(ctx context.Context, tx pgx.Tx) error { return runSQL(ctx, tx, `select $1::text::int`, secret) },
		"json": func(ctx context.Context, tx pgx.Tx) error {
			return runSQL(ctx, tx, `select $1::text::jsonb`, `{"a": `+secret)
		},
		"date": func(ctx context.Context, tx pgx.Tx) error { return runSQL(ctx, tx, `select $1::text::date`, secret) },
		"cast": func(ctx context.Context, tx pgx.Tx) error { return runSQL(ctx, tx, `select $1::int`, []string{secret}) },
		"deferred": func(ctx context.Context, tx pgx.Tx) error {
			idem.ExecAtCommit(ctx, `insert into people values ($1)`, secret)
			return nil
		},
		"detail": func(ctx context.Context, tx pgx.Tx) error {
			err := runSQL(ctx, tx, `insert into people values ($1)`, secret)
			said, ok := errors.AsType[*pgconn.PgError](err)
			if !ok {
				return err
			}
			return errors.Join(fmt.Errorf("storing a person: %w: %s", err, said.Detail), errors.New("in full"))
		},
	}
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error { return statements[n.Order](ctx, tx) })
	s.openInbox()
	for name := range statements {
		s.wantAnswer(fmt.Sprintf(`{"id":"inline %[1]s","type":"paid","order":%[1]q}`, name), http.StatusServiceUnavailable)
	}
	s.processor.ParkAfter = 1
	s.inbox.MaxAttempts = 1
	for name := range statements {
		s.store(idem.Event{ID: "worked " + name, Type: "paid", Key: "worked " + name, Payload: fmt.Appendf(nil, `{"type":"paid","order":%q}`, name)})
	}
	s.drain(len(statements))
	for name, want := range map[string]string{
		"unique":   `ERROR: duplicate key value violates unique constraint "people_email_key" (SQLSTATE 23505)`,
		"check":    `ERROR: new row for relation "people" violates check constraint "adult" (SQLSTATE 23514)`,
		"number":   `ERROR: invalid input syntax for type integer: "…" (SQLSTATE 22P02)`,
		"json":     `ERROR: invalid input syntax for type json (SQLSTATE 22P02)`,
		"date":     `ERROR: invalid input syntax for type date: "…" (SQLSTATE 22007)`,
		"cast":     `failed to encode args[0]: unable to encode … into binary format for int4 (OID 23): cannot find encode plan`,
		"deferred": `ERROR: duplicate key value violates unique constraint "people_email_key" (SQLSTATE 23505)`,
		"detail":   "storing a person: ERROR: duplicate key value violates unique constraint \"people_email_key\" (SQLSTATE 23505): …\nin full",
	} {
		for _, mode := range []string{"inline ", "worked "} {
			got := queryOne[string](s, `select last_error from idem_events where event like '%/' || $1`, mode+name)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s%s (-want +got):\n%s", mode, name, diff)
			}
		}
	}
	if found := s.columnsWith(secret); found != nil {
		t.Errorf("%s is in %v", secret, found)
	}
	if strings.Contains(s.logged(), secret) {
		t.Error("the log names the person:\n" + s.logged())
	}
	failures := 0
	for _, o := range s.observations() {
		if o.Err != nil {
			failures++
			if strings.Contains(o.Err.Error(), secret) {
				t.Errorf("an observation names the person: %v", o.Err)
			}
		}
	}
	if want := 2 * len(statements); failures != want {
		t.Errorf("%d failures were observed, want %d", failures, want)
	}
}

// runSQL executes a statement, and returns its error as it is.
func runSQL(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, args...)
	return err
}

func (s *app) observations() []idem.Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]idem.Observation(nil), s.observed...)
}

var errNamesAna = errors.New("no order of " + secret)

func TestRedactErrorDecidesWhatAnErrorSaysAndNotWhatItIs(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(func(context.Context, pgx.Tx, *note) error { return idem.NoRetry(errNamesAna) })
	s.openInbox()
	for name, redact := range map[string]func(error) string{
		"typed": func(err error) string { return fmt.Sprintf("%T", errors.Unwrap(errors.Unwrap(err))) },
		"panic": func(error) string { panic(secret) },
	} {
		s.processor.RedactError, s.inbox.RedactError = redact, redact
		for mode, accept := range map[string]func(context.Context, idem.Event) (idem.Outcome, error){"processor": s.processor.Accept, "inbox": s.inbox.Accept} {
			id := name + mode
			if _, err := accept(t.Context(), idem.Event{ID: id, Type: "paid", Key: id, Payload: []byte(`{"type":"paid"}`)}); err != nil {
				t.Fatal(err)
			}
		}
		s.drain(1)
		if outcome, err := s.processor.Accept(t.Context(), idem.Event{ID: name + "unreadable", Type: "paid", Payload: []byte(`{"type":7,"name":"` + secret + `"}`)}); outcome != idem.Parked || err != nil {
			t.Error(outcome, err)
		}
	}
	want := map[string]string{"typed": "*errors.errorString", "panic": "the error is not shown, because RedactError panicked"}
	for name, text := range want {
		for _, mode := range []string{"processor", "inbox"} {
			s.wantRow(name+mode, "row(state, last_error = '"+text+"')", "(parked,t)")
		}
	}
	if sum, err := s.inbox.Replay(t.Context(), idem.Filter{}); counted(sum) != counted(idem.Replayed{Failed: 6}) || err != nil {
		t.Error(sum, err)
	}
	_, err := s.processor.DryRun(t.Context(), idem.Event{ID: "dry", Type: "paid", Payload: []byte(`{"type":"paid"}`)})
	if !errors.Is(err, errNamesAna) || strings.Contains(err.Error(), secret) {
		t.Errorf("DryRun = %v, want the handler's error in other words", err)
	}
	for _, o := range s.observations() {
		if o.Err != nil && strings.Contains(o.Err.Error(), secret) {
			t.Errorf("an observation names the person: %v", o.Err)
		}
	}
	if strings.Contains(s.logged(), secret) {
		t.Error("the log names the person:\n" + s.logged())
	}
	if found := s.columnsWith(secret); len(found) != 1 || found[0] != "idem_payloads.body" {
		t.Errorf("%s is in %v, want the bodies alone", secret, found)
	}
}
