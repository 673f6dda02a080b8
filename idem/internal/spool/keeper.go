package spool

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/internal/batch"
)

// Keeper keeps events in a [Dir] while its [Sink] does not take them, and drains the Dir
// into the Sink when that does.
type Keeper struct {
	dir      *Dir
	maxBytes func() int64 // how large the files may become together
	writer   *batch.Writer[[]byte, error]
	gate     *gate
	seed     maphash.Seed

	mu   sync.Mutex
	sink Sink // the owner of these events
}

// NewKeeper returns a Keeper of d, with files of at most maxBytes together.
func NewKeeper(d *Dir, maxBytes func() int64) *Keeper {
	k := &Keeper{dir: d, maxBytes: maxBytes, gate: newGate(), seed: maphash.MakeSeed()}
	k.writer = batch.NewWriter(k.writeGroup, func(record []byte) int { return len(record) })
	if !d.Empty() {
		k.gate.shutForUnknown()
	}
	return k
}

// Attach gives the events to a sink. It reports false if they are another one's: two
// would store each other's events.
func (k *Keeper) Attach(to Sink) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sink == nil {
		k.sink = to
	}
	return k.sink == to
}

// ensureDraining has the spool drained, if it is not empty and not being drained.
func (k *Keeper) ensureDraining() {
	k.mu.Lock()
	to := k.sink
	k.mu.Unlock()
	if to != nil && k.gate.startDraining() {
		go newDrainer(k.dir, k.gate, to).run()
	}
}

// Enter returns the context of a delivery that goes to the sink itself, which ends when
// deliveries must stop that, or false if the event must be Put. While deliveries are
// paused it waits, once.
func (k *Keeper) Enter(ctx context.Context) (direct context.Context, ok bool) {
	return k.gate.enter(ctx)
}

// Shut has all deliveries Put their events, until the spool is empty. first reports
// whether they did not before.
func (k *Keeper) Shut() (first bool) { return k.gate.shut() }

// State reports whether events are Put, and returns why the last pass of the drainer failed.
func (k *Keeper) State() (shut bool, err error) { return k.gate.state() }

// NextTry returns a channel that is closed once the next pass has failed, or the spool is empty.
func (k *Keeper) NextTry() <-chan struct{} { return k.gate.nextTry() }

// errFull is returned for an event that is not kept.
var errFull = errors.New("it is full: raise MaxBytes, or see why Postgres does not take its events")

// writeGroup writes records to one file, as many of them as there is room for.
func (k *Keeper) writeGroup(records [][]byte) []error {
	_, size := k.dir.Held()
	most, fit := k.maxBytes(), 0
	for fit < len(records) && size+LineSize(records[fit]) <= most {
		size += LineSize(records[fit])
		fit++
	}
	results := make([]error, len(records))
	for n := fit; n < len(records); n++ {
		results[n] = errFull
	}
	if fit == 0 {
		return results
	}
	err := k.dir.Put(records[:fit])
	for n := range fit {
		results[n] = err
	}
	k.gate.shut() // the deliveries of these events may have stopped waiting for the file, and ended
	k.ensureDraining()
	return results
}

// ErrBehind is returned for an event that is not kept and must not go to the sink either: it would
// pass the earlier ones.
var ErrBehind = errors.New("it holds earlier events of the entity")

// Put keeps an event of a lane, as the record that encode returns. The error is
// [ErrBehind] if there may be earlier events of the lane.
func (k *Keeper) Put(ctx context.Context, lane string, encode func() ([]byte, error)) error {
	hash := maphash.String(k.seed, lane)
	behind := k.gate.beginPut(hash)
	record, err := encode()
	kept := false
	if err == nil {
		failure, answered := k.writer.Write(ctx, record)
		err, kept = failure, failure == nil
		if !answered { // the file may be written yet
			err, kept = errors.New("the disk did not answer in time"), true
		}
	}
	k.gate.endPut(hash, kept)
	k.ensureDraining()
	switch {
	case err == nil:
		return nil
	case behind:
		return fmt.Errorf("the spool cannot keep the event: %w; and %w", err, ErrBehind)
	}
	return fmt.Errorf("the spool cannot keep the event: %w", err)
}

// Scan finds the files that another process has left in the directory, and has them drained.
func (k *Keeper) Scan() {
	k.dir.CheckWriting()
	if found, err := k.dir.Scan(time.Now().Add(-time.Minute)); err == nil && found { // the younger ones' process may live
		k.gate.shutForUnknown()
	}
	k.ensureDraining()
}
