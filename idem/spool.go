package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem/internal/spool"
)

// Spool is a directory on this machine where an [Inbox] keeps events while Postgres
// cannot take them: it is down, failing over, read-only or hanging, or the pool has no
// connection. The provider is answered 200 once the event is in Postgres or in the
// spool, and 503 only if neither takes it. The events of the spool go to Postgres
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
// gets again, or no spool. The volume must be one on which fsync waits for the disk: local
// disks and block storage do, network file systems often do not. Before a volume is
// deleted, see that the directory has no files with names that end in ".spool".
//
// # Order
//
// The events of one entity reach Postgres in the order in which this process has
// acknowledged them: while the spool has events, new ones go there too. That costs
// the disk's time instead of a timeout for each delivery, and ends when the spool is
// empty. If another process receives a later event of the entity meanwhile, and has
// no outage, that one may be processed first; [Inbox] orders events that it has not
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
// # Files that are set aside
//
// An event that Postgres refuses because of its content is moved to a file with a
// name that ends in ".refused". A file that was read whole, and has an event that fails its
// checksum, is kept with the ending ".damaged", after its other events have been stored.
// Both are logged as errors, and fail the spool check of package health: those events are
// acknowledged and not stored. A line is a checksum and the event as JSON, with its body
// in base64. Have the provider deliver them again, or read from its API the events that they were
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
// A spool on a volume that is full or read-only stores its events in Postgres, and keeps
// nothing new: an event that Postgres does not take is answered 503 until files can be
// written again. Both fail the spool check of package health.
//
// The exported fields are settings: change them before the first event.
type Spool struct {
	// MaxBytes is the largest size of all files together. At that size the spool
	// is full, and events that Postgres does not take are answered 503. A body takes
	// about one and a half times its size, and each file at least a block of the disk:
	// let the volume be twice as large. Default: 1 GiB.
	MaxBytes int64

	dir    spoolDir
	keeper spoolKeeper
}

// spoolDir is a [*spool.Dir], and spoolKeeper a [*spool.Keeper]. They are interfaces so
// that a program that opens no spool links neither.
type (
	spoolDir interface {
		Held() (records int, bytes int64)
		Oldest() time.Time
		Faults() spool.Faults
		Aside() int
	}

	spoolKeeper interface {
		Attach(to spool.Sink) bool
		Enter(ctx context.Context) (direct context.Context, ok bool)
		Shut() (first bool)
		State() (shut bool, err error)
		NextTry() <-chan struct{}
		Put(ctx context.Context, lane string, encode func() ([]byte, error)) error
		Scan()
	}
)

// OpenSpool opens the spool in a directory, with the events that an earlier process
// has left there. It creates the directory, but not its parent, which a volume that
// is not mounted may lack. It returns an error if the directory cannot be read. If only
// writing fails, the spool opens, and stores its events in Postgres.
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
	s := &Spool{MaxBytes: 1 << 30, dir: d}
	s.keeper = spool.NewKeeper(d, func() int64 { return s.MaxBytes })
	return s
}

// Held returns how many events are in the directory, and when the oldest of them was put there;
// the zero time without any.
func (s *Spool) Held() (events int, oldest time.Time) {
	if events, _ = s.dir.Held(); events == 0 {
		return 0, time.Time{}
	}
	return events, s.dir.Oldest()
}
