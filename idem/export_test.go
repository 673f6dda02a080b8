package idem

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/spool"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/internal/wire"
)

// Waiting returns how many deliveries wait to be stored, those not among them
// that are being stored.
func (i *Inbox) Waiting() int { return i.writer.Waiting() }

// Pool returns the inbox's pool.
func (i *Inbox) Pool() *pgxpool.Pool { return i.pool }

// OpenSpoolOn opens a spool on a disk with faults.
func OpenSpoolOn(dir string, disk spool.Disk) (*Spool, error) {
	d, err := spool.Open(dir, disk)
	if err != nil {
		return nil, err
	}
	return newSpool(d), nil
}

// Spooled returns how many events the spool holds.
func (s *Spool) Spooled() int {
	n, _ := s.dir.Held()
	return n
}

// Age is the age of the oldest event in the spool.
func (s *Spool) Age() time.Duration { return time.Since(s.dir.Oldest()) }

// Spooling reports whether events go to the spool.
func (s *Spool) Spooling() bool {
	shut, _ := s.keeper.State()
	return shut
}

// Record is an event as a spool keeps it.
func Record(e Event, trace string, at time.Time) ([]byte, error) {
	return wire.EncodeRecord(store.Incoming{Event: e.row(), Trace: trace}, at)
}

// AwaitSpool waits until the inbox's spool is empty, or could not be drained.
func (i *Inbox) AwaitSpool(ctx context.Context) error { return i.awaitSpool(ctx) }

// UntilDrained waits until events go to Postgres again, and not longer than most.
func (s *Spool) UntilDrained(most time.Duration) bool {
	for late := time.After(most); ; {
		tried := s.keeper.NextTry()
		if shut, _ := s.keeper.State(); !shut {
			return true
		}
		select {
		case <-tried:
		case <-late:
			return false
		}
	}
}

// GoOn goes on with what was held and is no more, as Replay does.
func (p *Processor) GoOn(ctx context.Context) error {
	_, err := p.goThroughLanes(ctx, Replayed{}, func(Replayed, Event, error) {})
	return err
}

// AwaitGoingOn waits until what goes on beside deliveries has ended.
func (p *Processor) AwaitGoingOn() {
	for p.going.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// PathsKept returns the number of paths of refused deliveries that are counted each for itself.
func (in *Endpoint) PathsKept() int { return in.refused.Paths() }
