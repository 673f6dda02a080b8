package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// holdings is what the shop's database holds.
type holdings struct {
	orders []order
	events []events
}

// order is an order and the money that came in for it. The one without id is
// the money that nobody asked for.
type order struct {
	id       string
	total    asaas.Money
	currency string
	state    string
	booked   asaas.Money
	entries  string // their numbers in the ledger
}

// events counts a provider's events by state.
type events struct {
	source                            string
	done, retrying, unhandled, failed int64
}

func (s *shop) read(ctx context.Context) (h holdings, err error) {
	if h.orders, err = s.readOrders(ctx); err != nil {
		return h, fmt.Errorf("reading the orders: %w", err)
	}
	for source, p := range map[string]*idem.Processor{"asaas": s.asaas, "zeltapay": s.zeltapay} {
	}
	return h, nil
}
