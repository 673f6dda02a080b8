package idem

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/paghooks/paghooks/idem/internal/batch"
	"github.com/paghooks/paghooks/idem/internal/spool"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Spool is a directory on this machine where an [Inbox] keeps events while Postgres
// cannot take them: it is down, failing over, read-only or hanging, or the pool has no
// connection. The provider is answered 200 once the event is in Postgres or in the
// spool, and 503 only if neither takes it. What is in the spool goes to Postgres
// when it is back, by itself; its outcome is [Spooled] until then.
//
//	spool, err := idem.OpenSpool("/var/lib/shop/webhooks")
//	inbox := idem.NewInbox(pool, events)
//	inbox.Spool = spool
//
// Each inbox of each process needs a spool, and a directory, of its own.
//
// # The disk must outlive the process
//
// An event in the spool is acknowledged: the provider does not send it again. The
// directory of a container, a serverless function or a machine that is replaced goes
// with it, and so do the events. Use a persistent volume that the next process
// gets again, or no spool. The volume must be one whose fsync waits for the disk: local
// disks and block storage do, network file systems often do not. Before a volume is
// deleted, see that the directory has no files whose names end in ".spool".
//
// # Order
//
// The events of one entity reach Postgres in the order in which this process has
// acknowledged them: while the spool has events, new ones go there too. That costs
// the disk's time instead of a timeout for each delivery, and ends when the spool is
// empty. If another process receives a later event of the entity meanwhile, and has
// no outage, that one may be processed first; [Inbox] orders what it has not
// processed yet by the provider's time.
//
// # Personal data
//
// Files hold the bodies of events, which name people. Only the user of the process can
// read them, and they are deleted once their events are in Postgres. Encrypt the
// volume if that does not suffice, and keep it out of backups: an event that is
// restored after [Common.Retention] has passed would be processed again, so those
// that are as old are set aside.
//
// # What is set aside
//
// An event that Postgres refuses because of what is in it is moved to a file whose
// name ends in ".refused". A file that was read whole, and has an event that fails its
// checksum, is kept with the ending ".damaged", after its other events have been stored.
// Both are logged as errors, and fail the spool check of package health: those events are
// acknowledged and not stored. A line is a checksum and the event as JSON, with its body
// in base64. Have the provider deliver them again, or read from its API what they were
// about; then delete the file. A file of refused events is tried again if its name ends
// in ".spool" when the process starts.
//
// # A disk that fails
//
// A file that cannot be read, because of the disk, its permissions or a process without
// file descriptors, is read again every few seconds for as long as that lasts. Later
// events wait behind it, because it may have earlier ones of their entities. If the disk
// will never give it, give it a name that ends in ".damaged", and the rest goes on.
//
// A spool whose volume is full or read-only stores in Postgres what it holds, and keeps
// nothing new: an event that Postgres does not take is answered 503 until files can be
// written again. Both fail the spool check of package health.
//
// The exported fields are settings: change them before the first event.
type Spool struct {
	// MaxBytes is how large the files may become together. When they are, the spool
	// is full, and events that Postgres does not take are answered 503. A body takes
	// about one and a half times its size, and each file at least a block of the disk:
	// let the volume be twice as large. Default: 1 GiB.
	MaxBytes int64

	dir    *spool.Dir
	writer *batch.Writer[[]byte, error]
	gate   *gate
	inbox  atomic.Pointer[Inbox] // whose events these are
	seed   maphash.Seed
}

// OpenSpool opens the spool in a directory, with the events that an earlier process
// has left there. It creates the directory, but not its parent, which a volume that
// is not mounted may lack. It returns an error if the directory cannot be read. If only
// writing fails, the spool opens, and stores in Postgres what it has.
//
// Nothing needs to be closed.
func OpenSpool(dir string) (*Spool, error) {
	d, err := spool.Open(dir, spool.System{})
	if err != nil {
		return nil, fmt.Errorf("idem: the spool cannot be opened: make %q a directory that this process can read and write: %w", dir, err)
	}
	return newSpool(d), nil
}

func newSpool(d *spool.Dir) *Spool {
	s := &Spool{MaxBytes: 1 << 30, dir: d, gate: newGate(), seed: maphash.MakeSeed()}
	s.writer = batch.NewWriter(s.writeGroup, func(record []byte) int { return len(record) })
	if !d.Empty() {
		s.gate.shutForUnknown()
	}
	return s
}

// ensureDraining has the spool drained, if it is not empty and nobody drains it. What
// was acknowledged does not depend on a call of Run.
func (s *Spool) ensureDraining() {
	if i := s.inbox.Load(); i != nil && s.gate.startDraining() {
		go newDrainer(s.dir, s.gate, inboxSink{i}).run()
	}
}

// errSpoolFull is why an event is not kept.
var errSpoolFull = errors.New("it is full: raise MaxBytes, or see why Postgres does not take its events")

// writeGroup writes records to one file, as many of them as there is room for.
func (s *Spool) writeGroup(records [][]byte) []error {
	_, size := s.dir.Held()
	fit := 0
	for fit < len(records) && size+spool.LineSize(records[fit]) <= s.MaxBytes {
		size += spool.LineSize(records[fit])
		fit++
	}
	results := make([]error, len(records))
	for n := fit; n < len(records); n++ {
		results[n] = errSpoolFull
	}
	if fit == 0 {
		return results
	}
	err := s.dir.Put(records[:fit])
	for n := range fit {
		results[n] = err
	}
	s.gate.shut() // the deliveries of these events may have stopped waiting for the file, and ended
	s.ensureDraining()
	return results
}

// attach makes the spool that of one inbox. Two would store each other's events.
func (s *Spool) attach(i *Inbox) error {
	if s.inbox.CompareAndSwap(nil, i) || s.inbox.Load() == i {
		return nil
	}
	return errors.New("the spool is another inbox's: open one for each, with a directory of its own")
}

// errBehind is why an event that is not kept must not go to Postgres either: it would
// pass the earlier ones.
var errBehind = errors.New("it holds earlier events of the entity")

// put keeps an event. The error is errBehind if the spool may have earlier events of its
// entity.
func (s *Spool) put(ctx context.Context, e store.Incoming) error {
	lane := maphash.String(s.seed, e.Lane())
	behind := s.gate.beginPut(lane)
	record, err := encodeRecord(e, time.Now())
	kept := false
	if err == nil {
		failure, answered := s.writer.Write(ctx, record)
		err, kept = failure, failure == nil
		if !answered { // the file may be written yet
			err, kept = errors.New("the disk did not answer in time"), true
		}
	}
	s.gate.endPut(lane, kept)
	s.ensureDraining()
	switch {
	case err == nil:
		return nil
	case behind:
		return fmt.Errorf("the spool cannot keep the event: %w; and %w", err, errBehind)
	}
	return fmt.Errorf("the spool cannot keep the event: %w", err)
}

// scan finds what another process has left in the directory, and has it drained.
func (s *Spool) scan(i *Inbox) {
	if s.attach(i) != nil {
		return
	}
	s.dir.CheckWriting()
	if found, err := s.dir.Scan(time.Now().Add(-time.Minute)); err == nil && found { // the younger ones' process may live
		s.gate.shutForUnknown()
	}
	s.ensureDraining()
}
