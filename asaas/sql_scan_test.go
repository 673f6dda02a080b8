package asaas_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/optional"
)

// order is a row as an application has it, with this module's own types.
type order struct {
	ID       string
	Amount   asaas.Money
	Fee      optional.Value[asaas.Money]
	DueOn    asaas.Date
	PaidOn   optional.Value[asaas.Date]
	SeenAt   asaas.DateTime
	Clock    optional.Value[asaas.DateTime]
	Instant  optional.Value[asaas.DateTime]
	Note     optional.Value[string]
	Overdue  optional.Value[bool]
	Parcel   optional.Value[asaas.Int]
	Status   optional.Value[asaas.PaymentStatus]
	Midnight asaas.Date // of a timestamptz
}

const orders = `create temporary table orders (id text primary key, amount numeric not null, fee numeric, due_on date, paid_on date, seen_at timestamptz,
	clock timestamp, instant timestamptz, note text, overdue boolean, parcel bigint, status text, midnight timestamptz)`

const insertOrder = `insert into orders values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

func (o order) columns() []any {
	return []any{o.ID, o.Amount, o.Fee, o.DueOn, o.PaidOn, o.SeenAt, o.Clock, o.Instant, o.Note, o.Overdue, o.Parcel, o.Status, o.Midnight}
}

var twoOrders = []order{
	{
		ID: "1", Amount: asaas.Cents(1050), Fee: optional.Of(asaas.Cents(-199)), DueOn: "2026-08-08", PaidOn: optional.Of(asaas.Date("2026-08-09")),
		SeenAt: "2026-08-08T20:45:13-03:00", Clock: optional.Of(asaas.DateTime("2026-08-08T20:45:13.25-03:00")),
		Instant: optional.Of(asaas.DateTime("2026-08-08T21:00:00-03:00")),
		Note:    optional.Of(""), Overdue: optional.Of(false), Parcel: optional.Of(asaas.Int(2)), Status: optional.Of(asaas.PaymentStatusReceived),
		Midnight: "2026-08-08",
	},
	{
		ID: "2", Fee: optional.Null[asaas.Money](), PaidOn: optional.Null[asaas.Date](), Clock: optional.Null[asaas.DateTime](),
		Instant: optional.Null[asaas.DateTime](), Note: optional.Null[string](), Overdue: optional.Null[bool](), Parcel: optional.Null[asaas.Int](),
		Status: optional.Null[asaas.PaymentStatus](),
	},
}

func TestWhatIsStoredIsReadBackByPgx(t *testing.T) {
	t.Parallel()
	conn := abroad(t)
	if _, err := conn.Exec(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	for _, o := range twoOrders {
		if _, err := conn.Exec(t.Context(), insertOrder, o.columns()...); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		rows, err := conn.Query(t.Context(), `select * from orders order by id`, mode)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowToStructByName[order])
		if err != nil {
			t.Fatalf("%v: %v", mode, err)
		}
		if diff := cmp.Diff(twoOrders, got); diff != "" {
			t.Errorf("%v (-stored +read):\n%s", mode, diff)
		}
	}
}

func TestWhatIsStoredIsReadBackByCopy(t *testing.T) {
	t.Parallel()
	conn := abroad(t)
	if _, err := conn.Exec(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	names := []string{"id", "amount", "fee", "due_on", "paid_on", "seen_at", "clock", "instant", "note", "overdue", "parcel", "status", "midnight"}
	_, err := conn.CopyFrom(t.Context(), pgx.Identifier{"orders"}, names, pgx.CopyFromSlice(len(twoOrders), func(i int) ([]any, error) {
		return twoOrders[i].columns(), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := conn.Query(t.Context(), `select * from orders order by id`)
	got, err := pgx.CollectRows(rows, pgx.RowToStructByName[order])
	if diff := cmp.Diff(twoOrders, got); diff != "" || err != nil {
		t.Errorf("%v (-stored +read):\n%s", err, diff)
	}
}

func TestWhatIsStoredIsReadBackByDatabaseSQL(t *testing.T) {
	t.Parallel()
	db := stdlib.OpenDB(*abroad(t).Conn().Config())
	t.Cleanup(func() { db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	for _, want := range twoOrders {
		if _, err := tx.ExecContext(t.Context(), insertOrder, want.columns()...); err != nil {
			t.Fatal(err)
		}
		got := order{Clock: want.Clock} // a time without a zone cannot be told from one with it
		err := tx.QueryRowContext(t.Context(), `select id, amount, fee, due_on, paid_on, seen_at, instant, note, overdue, parcel, status, midnight
			from orders where id = $1`, want.ID).Scan(&got.ID, &got.Amount, &got.Fee, &got.DueOn, &got.PaidOn, &got.SeenAt, &got.Instant,
			&got.Note, &got.Overdue, &got.Parcel, &got.Status, &got.Midnight)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-stored +read):\n%s", err, diff)
		}
	}
}

func TestADateIsScannedFromWhatHasOne(t *testing.T) {
	t.Parallel()
	conn := abroad(t)
	for _, tt := range []struct{ query, date, dateTime, reason string }{
		{`select date '2026-08-08'`, "2026-08-08", "2026-08-08", "a day"},
		{`select timestamptz '2026-08-08 01:00:00+00'`, "2026-08-07", "2026-08-07T22:00:00-03:00", "an instant of the day before, in Brasília"},
		{`select timestamptz '2026-08-08 00:00:00+00'`, "2026-08-07", "2026-08-07T21:00:00-03:00", "midnight in UTC"},
		{`select timestamp '2026-08-08 23:30:00'`, "2026-08-08", "2026-08-08T23:30:00-03:00", "a clock"},
		{`select '08/08/2026'::text`, "08/08/2026", "08/08/2026", "a text, as it is"},
		{`select null::date`, "", "", "NULL"},
	} {
		var date asaas.Date
		var dateTime asaas.DateTime
		var maybe optional.Value[asaas.Date]
		for _, into := range []any{&date, &dateTime, &maybe} {
			if err := conn.QueryRow(t.Context(), tt.query).Scan(into); err != nil {
				t.Errorf("%s: %v", tt.reason, err)
			}
		}
		if string(date) != tt.date || string(dateTime) != tt.dateTime || maybe.OrZero() != date {
			t.Errorf("%s: got %q, %q and %v", tt.reason, date, dateTime, maybe)
		}
	}
	for _, query := range []string{`select 'infinity'::date`, `select '-infinity'::timestamptz`, `select 'infinity'::timestamp`, `select true`} {
		for _, into := range []any{new(asaas.Date), new(asaas.DateTime), new(optional.Value[asaas.Date])} {
			if err := conn.QueryRow(t.Context(), query).Scan(into); err == nil {
				t.Errorf("%s is scanned into %T: %v", query, into, into)
			}
		}
	}
}

var (
	_ sql.Scanner = new(asaas.Date)
	_ sql.Scanner = new(optional.Value[time.Time])
)
