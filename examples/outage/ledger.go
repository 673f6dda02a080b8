package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
)

// entry is a line of the ledger.
type entry struct {
	number int64
	payment
}

func (e entry) String() string {
	return fmt.Sprintf("entry %d: %s of R$ %s on %s", e.number, e.id, e.amount, e.day)
}

func (s *shop) ledger(ctx context.Context) ([]entry, error) {
	rows, err := s.pool.Query(ctx, `select number, payment, amount, coalesce(day::text, '') from entries order by number`)
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e entry, err error) {
		err = row.Scan(&e.number, &e.id, &e.amount, &e.day)
		return e, err
	})
}

// compare returns the differences between the ledger and Asaas's payments: each payment once,
// under the next number.
func compare(ledger []entry, paid []payment) error {
	var wrong []error
	for i := range max(len(ledger), len(paid)) {
		switch {
		case i >= len(ledger):
			wrong = append(wrong, fmt.Errorf("the ledger lacks %s", entry{int64(i + 1), paid[i]}))
		case i >= len(paid):
			wrong = append(wrong, fmt.Errorf("the ledger has %s, for which there is no payment", ledger[i]))
		case ledger[i] != entry{int64(i + 1), paid[i]}:
			wrong = append(wrong, fmt.Errorf("the ledger has %s, should have %s", ledger[i], entry{int64(i + 1), paid[i]}))
		}
	}
	return errors.Join(wrong...)
}

// events counts the events that the shop knows: those that are done, and those
// that are not.
func (s *shop) events(ctx context.Context) (done, open int, err error) {
	const query = `select count(*) filter (where state = 'done'), count(*) filter (where state <> 'done') from idem_events`
	if err := s.pool.QueryRow(ctx, query).Scan(&done, &open); err != nil {
		return 0, 0, fmt.Errorf("counting the events: %w", err)
	}
	return done, open, nil
}

// day holds the sums of a day.
type day struct {
	payments    int
	paid        asaas.Money
	booked      asaas.Money
	first, last int64 // numbers in the ledger
}

// printDays sets the ledger beside Asaas's payments, day by day.
func printDays(out io.Writer, ledger []entry, paid []payment) {
	days, order := make(map[string]*day), []string(nil)
	on := func(date string) *day {
		if days[date] == nil {
			days[date], order = new(day), append(order, date)
		}
		return days[date]
	}
	for _, p := range paid {
		d := on(p.day)
		d.payments++
		d.paid = d.paid.Add(p.amount)
	}
	for _, e := range ledger {
		d := on(e.day)
		if d.first == 0 {
			d.first = e.number
		}
		d.last = e.number
		d.booked = d.booked.Add(e.amount)
	}
	fmt.Fprintf(out, "%-10s  %8s  %11s  %11s  %s\n", "DAY", "PAYMENTS", "PAID", "BOOKED", "ENTRIES")
	for _, date := range order {
		d := days[date]
		fmt.Fprintf(out, "%-10s  %8d  %11s  %11s  %d to %d\n", date, d.payments, d.paid, d.booked, d.first, d.last)
	}
}
