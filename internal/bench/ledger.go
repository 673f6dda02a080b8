package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ledger holds the acknowledged events, per charge.
type ledger struct {
	events *events
	booked [charges]struct{ payments, cents atomic.Int64 }
}

// book enters an event that was answered 200.
func (l *ledger) book(n int64) {
	entry := &l.booked[n%charges]
	entry.payments.Add(1)
	entry.cents.Add(cents(n))
}

// effects are the effects on one charge in a database.
type effects struct {
	Charge          string
	Payments, Cents int64
}

// compare reads the effects with a query and returns where they differ.
func (l *ledger) compare(ctx context.Context, pool *pgxpool.Pool, query string) (differences []string, err error) {
	rows, err := pool.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[effects])
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: its query must return a charge's id, the number of its payments and their cents: %w", err)
	}
	return l.differences(found), nil
}

func (l *ledger) differences(found []effects) (differences []string) {
	var there [charges]effects
	for _, f := range found {
		number, ours := strings.CutPrefix(f.Charge, l.events.prefix())
		if !ours {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= charges || there[n].Charge != "" {
			differences = append(differences, fmt.Sprintf("%s is a charge of no event, or there twice", f.Charge))
			continue
		}
		there[n] = f
	}
	for n := range there {
		payments, sum := l.booked[n].payments.Load(), l.booked[n].cents.Load()
		if there[n].Payments != payments || there[n].Cents != sum {
			differences = append(differences, fmt.Sprintf("%s: %d payments of %d cents were acknowledged, the database has %d of %d cents",
				l.events.charge(int64(n)), payments, sum, there[n].Payments, there[n].Cents))
		}
	}
	return differences
}
