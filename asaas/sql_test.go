package asaas_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
)

// abroad is a connection whose session is neither in Brasília nor in UTC.
func abroad(t *testing.T) *pgxpool.Conn {
	t.Helper()
	conn, err := idemtest.Pool(t).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	if _, err := conn.Exec(t.Context(), `set time zone 'Asia/Tokyo'; set datestyle = 'ISO, MDY'`); err != nil {
		t.Fatal(err)
	}
	return conn
}

// stored is what Postgres makes of an argument for a column of a type: its
// text, or NULL.
func stored(t *testing.T, conn *pgxpool.Conn, columnType string, args ...any) string {
	t.Helper()
	got := new("NULL")
	err := conn.QueryRow(t.Context(), `select coalesce(($1::`+columnType+`)::text, 'NULL')`, args...).Scan(got)
	if err != nil {
		t.Errorf("%s: %v", columnType, err)
	}
	return *got
}

func TestADateIsAnArgumentOfAQuery(t *testing.T) {
	t.Parallel()
	conn := abroad(t)
	for _, tt := range []struct {
		arg                                any
		date, timestamptz, timestamp, text string
	}{
		{asaas.Date("2026-08-08"), "2026-08-08", "2026-08-08 12:00:00+09", "2026-08-08 00:00:00", "2026-08-08"},
		{asaas.Date("08/09/2026"), "2026-09-08", "2026-09-08 12:00:00+09", "2026-09-08 00:00:00", "2026-09-08"},
		{asaas.Date("2024-10-31T03:00:00+0000"), "2024-10-31", "2024-10-31 12:00:00+09", "2024-10-31 00:00:00", "2024-10-31"},
		{asaas.Date("2026-08-08 20:45:13"), "2026-08-08", "2026-08-08 12:00:00+09", "2026-08-08 00:00:00", "2026-08-08"},
		{asaas.DateTime("2026-08-08 20:45:13"), "2026-08-08", "2026-08-09 08:45:13+09", "2026-08-08 20:45:13", "2026-08-08T20:45:13-03:00"},
		{asaas.DateTime("03/08/2026 20:55:10"), "2026-08-03", "2026-08-04 08:55:10+09", "2026-08-03 20:55:10", "2026-08-03T20:55:10-03:00"},
		{asaas.DateTime("2026-08-09T02:35:18.25Z"), "2026-08-08", "2026-08-09 11:35:18.25+09", "2026-08-08 23:35:18.25", "2026-08-08T23:35:18.25-03:00"},
		{asaas.DateTime("2026-08-08"), "2026-08-08", "2026-08-08 12:00:00+09", "2026-08-08 00:00:00", "2026-08-08T00:00:00-03:00"},
		{value.Of(asaas.Date("08/09/2026")), "2026-09-08", "2026-09-08 12:00:00+09", "2026-09-08 00:00:00", "2026-09-08"},
		{value.Of(asaas.DateTime("2026-08-08 20:45:13")), "2026-08-08", "2026-08-09 08:45:13+09", "2026-08-08 20:45:13", "2026-08-08T20:45:13-03:00"},
		{asaas.Date(""), "NULL", "NULL", "NULL", "NULL"},
		{asaas.DateTime(""), "NULL", "NULL", "NULL", "NULL"},
		{value.Of(asaas.Date("")), "NULL", "NULL", "NULL", "NULL"},
		{value.Null[asaas.DateTime](), "NULL", "NULL", "NULL", "NULL"},
	} {
		want := []string{tt.date, tt.timestamptz, tt.timestamp, tt.text}
		got := []string{
			stored(t, conn, "date", tt.arg), stored(t, conn, "timestamptz", tt.arg),
			stored(t, conn, "timestamp", tt.arg), stored(t, conn, "text", tt.arg),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T %v (-want +got):\n%s", tt.arg, tt.arg, diff)
		}
	}
}

func TestADateIsAnArgumentWithEveryProtocol(t *testing.T) {
	t.Parallel()
	conn := abroad(t)
	day, instant := asaas.Date("08/09/2026"), asaas.DateTime("03/08/2026 20:55:10")
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		want := []string{"2026-09-08", "2026-09-08", "2026-08-04 08:55:10+09", "10.50"}
		got := []string{
			stored(t, conn, "date", mode, day), stored(t, conn, "text", mode, day),
			stored(t, conn, "timestamptz", mode, instant), stored(t, conn, "numeric", mode, asaas.Cents(1050)),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", mode, diff)
		}
	}
}

// Postgres itself would read 8/9/2026 as the 9th of August, and "today" as today.
func TestWhatIsNoDateIsNeverStored(t *testing.T) {
	t.Parallel()
	conn := abroad(t)
	for _, text := range []string{"8/9/2026", "08-09-2026", "today", "infinity", "20260808"} {
		for _, columnType := range []string{"date", "timestamptz", "timestamp", "text"} {
			for _, arg := range []any{asaas.Date(text), asaas.DateTime(text), value.Of(asaas.Date(text))} {
				var got string
				if err := conn.QueryRow(t.Context(), `select ($1::`+columnType+`)::text`, arg).Scan(&got); err == nil {
					t.Errorf("%T %q is stored as %s %s", arg, text, columnType, got)
				}
			}
		}
	}
}

func TestAnAmountIsExactInTheDatabase(t *testing.T) {
	t.Parallel()
	conn := abroad(t)
	for _, literal := range []string{"0", "10.50", "-0.05", "8.01", "999999999999999999", "0.000000000000000001", "123456789.123456789"} {
		sent := decimal(t, literal)
		var number, text asaas.Decimal
		err := conn.QueryRow(t.Context(), `select $1::numeric, $1::numeric::text`, sent).Scan(&number, &text)
		if err != nil || number != sent || text != sent {
			t.Errorf("%s came back as %s and %s, %v", literal, number, text, err)
		}
	}
	if got := stored(t, conn, "bigint", asaas.Int(-7)); got != "-7" {
		t.Errorf("an Int is stored as %s", got)
	}
	if got := stored(t, conn, "numeric", value.Null[asaas.Money]()); got != "NULL" {
		t.Errorf("no amount is stored as %s", got)
	}
}

func TestScanTakesWhatIsAnAmount(t *testing.T) {
	t.Parallel()
	conn := abroad(t)
	for _, tt := range []struct {
		query  string
		ok     bool
		reason string
	}{
		{`select 7::bigint`, true, "an integer"},
		{`select '7.00'::text`, true, "a text"},
		{`select 7.000::numeric(10,3)`, true, "a numeric with zeros"},
		{`select null::numeric`, false, "NULL is not 0"},
		{`select 'NaN'::numeric`, false, "not a number"},
		{`select 7::float8`, false, "a float is not exact"},
		{`select 1e30::numeric`, false, "too large"},
		{`select true`, false, "a boolean"},
	} {
		var got asaas.Decimal
		err := conn.QueryRow(t.Context(), tt.query).Scan(&got)
		if (err == nil) != tt.ok || tt.ok && got != asaas.Cents(700) {
			t.Errorf("%s: got %s, %v", tt.reason, got, err)
		}
	}
	var bytes asaas.Decimal
	if err := bytes.Scan([]byte("7.00")); err != nil || bytes != asaas.Cents(700) {
		t.Errorf("bytes are scanned as %s, %v", bytes, err)
	}
	null := sql.Null[asaas.Decimal]{Valid: true}
	if err := conn.QueryRow(t.Context(), `select null::numeric`).Scan(&null); err != nil || null.Valid {
		t.Errorf("NULL is scanned as %v, %v", null, err)
	}
}

// order is a row as an application has it, with this module's own types.
type order struct {
	ID       string
	Amount   asaas.Money
	Fee      value.Optional[asaas.Money]
	DueOn    asaas.Date
	PaidOn   value.Optional[asaas.Date]
	SeenAt   asaas.DateTime
	Clock    value.Optional[asaas.DateTime]
	Instant  value.Optional[asaas.DateTime]
	Note     value.Optional[string]
	Overdue  value.Optional[bool]
	Parcel   value.Optional[asaas.Int]
	Status   value.Optional[asaas.PaymentStatus]
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
		ID: "1", Amount: asaas.Cents(1050), Fee: value.Of(asaas.Cents(-199)), DueOn: "2026-08-08", PaidOn: value.Of(asaas.Date("2026-08-09")),
		SeenAt: "2026-08-08T20:45:13-03:00", Clock: value.Of(asaas.DateTime("2026-08-08T20:45:13.25-03:00")),
		Instant: value.Of(asaas.DateTime("2026-08-08T21:00:00-03:00")),
		Note:    value.Of(""), Overdue: value.Of(false), Parcel: value.Of(asaas.Int(2)), Status: value.Of(asaas.PaymentStatusReceived),
		Midnight: "2026-08-08",
	},
	{
		ID: "2", Fee: value.Null[asaas.Money](), PaidOn: value.Null[asaas.Date](), Clock: value.Null[asaas.DateTime](),
		Instant: value.Null[asaas.DateTime](), Note: value.Null[string](), Overdue: value.Null[bool](), Parcel: value.Null[asaas.Int](),
		Status: value.Null[asaas.PaymentStatus](),
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
		var maybe value.Optional[asaas.Date]
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
		for _, into := range []any{new(asaas.Date), new(asaas.DateTime), new(value.Optional[asaas.Date])} {
			if err := conn.QueryRow(t.Context(), query).Scan(into); err == nil {
				t.Errorf("%s is scanned into %T: %v", query, into, into)
			}
		}
	}
}

var (
	_ sql.Scanner = new(asaas.Date)
	_ sql.Scanner = new(value.Optional[time.Time])
)
