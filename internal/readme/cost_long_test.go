//go:build long

package readme

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
)

// What the program by hand, and so the README's, does for an event, it does in one transaction, with no statement
// that its handler does not need.
func TestTheProgramHandlesAnEventInOneTransactionOfFewStatements(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), tables(t)+`; insert into orders (id, total) values ('order-1', 100)`); err != nil {
		t.Fatal(err)
	}
	code := byHand(t)
	const opens = "pgxpool.New("
	if strings.Count(code.text, opens) != 1 {
		t.Fatalf("the program does not open its pool by %s", opens)
	}
	code.text = strings.Replace(code.text, opens, "traced(", 1) + tracer
	code.text = strings.Replace(code.text, `"context"`, "\"context\"\n\t\"fmt\"", 1)
	deliver, _, log := startLogged(t, buildInto(t, t.TempDir(), code), url, token)
	if err := charges.Filled(t.Context(), pool, "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	s, pix, boleto := &shop{pool, deliver}, asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000)), asaastest.NewCharge(asaas.BillingTypeBoleto, asaas.Cents(10000))
	pix.Payment.ExternalReference = value.Of("order-1")
	s.send(t, asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000)).Created()) // the first one also makes the account known
	var want [][]string
	sets := []string{"select pg_advisory_xact_lock($1 #", "select coalesce(sum(settled), 0),", "update orders set"}
	for _, event := range []struct {
		body []byte
		work []string // beside the copy of the charge
	}{
		{pix.Created(), sets},
		{pix.Received(), sets},
		{boleto.Created(), nil},
		{boleto.Overdue(), nil},
	} {
		s.send(t, event.body)
		want = append(want, slices.Concat([]string{"begin", "update idem_events e", "delete from idem_payloads"},
			[]string{"with old as"}, event.work, []string{"update idem_payloads set", "commit"}))
	}
	s.send(t, boleto.Received()) // the statements of the events before are said by then
	if diff := cmp.Diff(want, attempts(log.String())[1:len(want)+1]); diff != "" {
		t.Errorf("statements of each event (-want +got):\n%s", diff)
	}
}

var executes = regexp.MustCompile(`(?m)^session (\d+) executes "(?:\\[nt])*(\S+(?: \S+){0,2})`)

// attempts returns the first words of the statements of each transaction that copies a charge, and of those that follow
// it outside of a transaction.
func attempts(log string) (all [][]string) {
	sessions := map[string][]string{} // the transaction in each, or behind its end the attempt that it was
	of := map[string]int{}            // the number of that attempt, from 1
	for _, line := range executes.FindAllStringSubmatch(log, -1) {
		session, words := line[1], strings.Trim(line[2], `"`)
		switch {
		case strings.HasPrefix(words, "begin"):
			sessions[session], of[session] = nil, 0
		case of[session] > 0 && !strings.HasPrefix(words, "select pg_notify"): // which wakes a worker
			all[of[session]-1] = append(all[of[session]-1], words)
		}
		sessions[session] = append(sessions[session], words)
		if words == "commit" && slices.Contains(sessions[session], "with old as") {
			all = append(all, sessions[session])
			sessions[session], of[session] = nil, len(all)
		}
	}
	return all
}

// tracer has the program print each statement that it executes by its pool.
const tracer = `
type tracer struct{}

func traced(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = tracer{}
	return pgxpool.NewWithConfig(ctx, config)
}

func say(conn *pgx.Conn, sql string) { fmt.Fprintf(os.Stderr, "session %d executes %q\n", conn.PgConn().PID(), sql) }

func (tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	say(conn, q.SQL)
	return ctx
}

func (tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context { return ctx }

func (tracer) TraceBatchQuery(_ context.Context, conn *pgx.Conn, q pgx.TraceBatchQueryData) { say(conn, q.SQL) }

func (tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
`
