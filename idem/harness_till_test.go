package idem_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// till is an application whose handlers book what orders are paid and refunded,
// inline, in one ledger. Events whose ids are broken fail.
type till struct {
	*app
	mu     sync.Mutex
	broken map[string]bool
}

func newTill(t *testing.T) *till {
	t.Helper()
	s := &till{app: newApp(t), broken: make(map[string]bool)}
	s.exec(`create table ledger (place bigserial, entry text)`)
	s.notes = s.handlers()
	s.processor = s.newProcessor()
	s.processor.ParkAfter = 1
	return s
}

func (s *till) handlers() *notes {
	source := &notes{}
	idem.Handle(&source.Routes, "paid", s.book)
	idem.Handle(&source.Routes, "refunded", s.book)
	return source
}

func (s *till) book(ctx context.Context, tx pgx.Tx, n *note) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken[n.ID] {
		return errors.New("no such order")
	}
	_, err := tx.Exec(ctx, `insert into ledger (entry) values ($1)`, n.ID+" "+n.Type)
	return err
}

// fails has these events fail, and no others.
func (s *till) fails(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.broken)
	for _, id := range ids {
		s.broken[id] = true
	}
}

func (s *till) wantLedger(want ...string) {
	s.Helper()
	got := queryOne[[]string](s.app, `select coalesce(array_agg(entry order by place), '{}') from ledger`)
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		s.Errorf("the ledger (-want +got):\n%s\n%s", diff, s.logged())
	}
}

// untilLedger waits until the ledger has n entries.
func (s *till) untilLedger(n int) {
	s.Helper()
	s.until(`select count(*) = $1 from ledger`, n)
}

// run has the processor go on with what is freed, as Serve does.
func (s *till) run(p *idem.Processor) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	s.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.Errorf("Run = %v", err)
		}
	})
}

func (s *till) replays(f idem.Filter, want idem.Replayed) {
	s.Helper()
	if got, err := s.processor.Replay(s.Context(), f); counted(got) != counted(want) || err != nil {
		s.Errorf("Replay = %+v, %v, want %+v\n%s", got, err, want, s.logged())
	}
}

func about(id, eventType, order string) string {
	return fmt.Sprintf(`{"id":%q,"type":%q,"order":%q}`, id, eventType, order)
}

// at is an event of an order at a second of the provider's clock.
func at(second int, id, eventType, order string) idem.Event {
	e := identify([]byte(about(id, eventType, order)))
	e.OccurredAt = time.Unix(1_700_000_000+int64(second), 0)
	return e
}

func (s *till) accepts(p *idem.Processor, e idem.Event, want idem.Outcome) {
	s.Helper()
	if got, err := p.Accept(s.Context(), e); got != want || want.Acknowledged() != (err == nil) {
		s.Errorf("Accept of %s = %s, %v, want %s\n%s", e.ID, got, err, want, s.logged())
	}
}
