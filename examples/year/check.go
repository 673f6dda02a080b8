package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
)

// check compares the shop's books with the history of the charges.
func (y *year) check(ctx context.Context) error {
	booked, err := y.ledger(ctx)
	if err != nil {
		return err
	}
	var wrong []error
	fmt.Fprintf(y.out, "\n%-22s  %-8s  %10s  %10s\n", "CHARGE", "AT ASAAS", "TRUE", "BOOKED")
	for _, c := range y.charges {
		p := c.Payment
		want, state := p.Value, "paid"
		if p.Status == asaas.PaymentStatusRefunded {
			want, state = asaas.Money{}, "refunded"
		}
		fmt.Fprintf(y.out, "%-22s  %-8s  %10s  %10s\n", y.names[p.ID], p.Status, want, booked[p.ID])
		if !booked[p.ID].Equal(want) {
			wrong = append(wrong, fmt.Errorf("%s is booked as %s, should be %s", y.names[p.ID], booked[p.ID], want))
		}
		delete(booked, p.ID)
		if order := p.ExternalReference.Or(""); order != "" && y.state(ctx, order) != state {
			wrong = append(wrong, fmt.Errorf("%s is %s, should be %s", order, y.state(ctx, order), state))
		}
	}
	for charge := range booked {
		wrong = append(wrong, fmt.Errorf("%s is booked, and no such charge was made", charge))
	}
	open := 0
	if err := y.books.QueryRow(ctx, `select count(*) from idem_events where state <> 'done'`).Scan(&open); err != nil {
		return fmt.Errorf("counting the events: %w", err)
	}
	if open > 0 {
		wrong = append(wrong, fmt.Errorf("%d events are not done", open))
	}
	for check, red := range y.red {
		if red {
			wrong = append(wrong, fmt.Errorf("the check %s of health fails in the end", check))
		}
	}
	return errors.Join(wrong...)
}

func (y *year) ledger(ctx context.Context) (map[string]asaas.Money, error) {
	rows, err := y.books.Query(ctx, `select charge, sum(amount) from ledger group by charge`)
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	sums := map[string]asaas.Money{}
	var charge string
	var sum asaas.Money
	_, err = pgx.ForEachRow(rows, []any{&charge, &sum}, func() error {
		sums[charge] = sum
		return nil
	})
	return sums, err
}
