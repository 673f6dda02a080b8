package testkit

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// Till is a shop whose handlers book what orders are paid and refunded, in one ledger. Events whose IDs are
// broken fail.
type Till struct {
	*Shop
	mu     sync.Mutex
	broken map[string]bool
}

// NewTill returns a till with handlers of paid and refunded notes.
func NewTill(t testing.TB) *Till {
	t.Helper()
	s := &Till{Shop: NewShop(t), broken: make(map[string]bool)}
	s.Exec(`create table ledger (place bigserial, entry text)`)
	s.Handle("paid", "refunded")
	return s
}

// Handle deploys the till with a handler of these types.
func (s *Till) Handle(types ...string) {
	s.Deploy(func(n *Source) {
		for _, eventType := range types {
			idem.Handle(&n.Routes, eventType, s.book)
		}
	})
}

func (s *Till) book(ctx context.Context, tx pgx.Tx, n *Note) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken[n.ID] {
		return errors.New("no such order")
	}
	_, err := tx.Exec(ctx, `insert into ledger (entry) values ($1)`, n.ID+" "+n.Type)
	return err
}

// Fails has these events fail, and no others.
func (s *Till) Fails(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.broken)
	for _, id := range ids {
		s.broken[id] = true
	}
}

// WantLedger checks what is booked, as "id type".
func (s *Till) WantLedger(want ...string) {
	s.Helper()
	got := QueryOne[[]string](s, s.Pool, `select coalesce(array_agg(entry order by place), '{}') from ledger`)
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		s.Errorf("the ledger (-want +got):\n%s\n%s", diff, s.Logged())
	}
}
