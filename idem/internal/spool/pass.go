package spool

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
)

// passSize is the number of new events that a pass stores before it ends early, so that the
// drainer sees whether more arrive than are drained.
const passSize = 4096

// The largest group of files that is read at once, and stored in one
// statement. A file of its own may be larger.
const (
	groupEvents = 256
	groupBytes  = 6 << 20
)

// pass is one way through the files of a spool, the oldest first.
type pass struct {
	dir       *Dir
	sink      Sink
	enough    int // new events after which it ends early
	maxEvents int // in a statement

	files  int             // with stored events
	stored int             // events that the sink did not have
	left   int             // events that are left to the next pass
	cause  error           // why the first of them was
	behind map[string]bool // lanes that have an event that is left, which is to be stored first
}

// drainedFile is a file while its events are being stored.
type drainedFile struct {
	File
	damaged int      // records
	left    bool     // some events are left to the next pass
	refused [][]byte // records that Postgres does not take
}

// drainedEvent is an event of a file.
type drainedEvent struct {
	Event
	record []byte
	file   *drainedFile
}

// run stores what the files hold. One file's events come after those of older files, and
// those of a file in their order.
func (p *pass) run(ctx context.Context) error {
	files := p.dir.Files()
	for len(files) > 0 && p.stored < p.enough {
		n := group(files)
		if err := p.storeFiles(ctx, files[:n]); err != nil {
			return err
		}
		files = files[n:]
	}
	if p.left > 0 {
		return fmt.Errorf("%d events wait: %w", p.left, p.cause)
	}
	return nil
}

// group returns the number of files, from the first on, that are stored together.
func group(files []File) (n int) {
	events, bytes := 0, int64(0)
	for _, f := range files {
		events, bytes = events+f.Records, bytes+f.Size
		if n > 0 && (events > groupEvents || bytes > groupBytes) {
			break
		}
		n++
	}
	return n
}

// storeFiles stores the events of files, up to one that cannot be read: which entities
// the events in that are of is not known, and later ones must not pass them.
func (p *pass) storeFiles(ctx context.Context, files []File) error {
	var events []drainedEvent
	var read []*drainedFile
	var unread error
	for _, f := range files {
		records, damaged, err := p.dir.Read(f)
		if err != nil {
			unread = fmt.Errorf("reading the spool: %w", err)
			break
		}
		file := &drainedFile{File: f, damaged: damaged}
		read = append(read, file)
		for _, record := range records {
			if e, ok := p.decode(ctx, file, record); ok {
				events = append(events, e)
			}
		}
	}
	if err := p.storeGroups(ctx, events, p.maxEvents); err != nil {
		return err
	}
	for _, f := range read {
		p.finish(ctx, f)
	}
	return unread
}

// decode reads an event of f. If it cannot be stored, it is refused, and ok is false.
func (p *pass) decode(ctx context.Context, f *drainedFile, record []byte) (e drainedEvent, ok bool) {
	event, err := p.sink.Decode(record)
	e = drainedEvent{event, record, f}
	if err != nil {
		p.refuse(ctx, e, err)
	}
	return e, err == nil
}

// notBehind returns the events that are behind none that is left, and leaves the others.
func (p *pass) notBehind(events []drainedEvent) (free []drainedEvent) {
	for _, e := range events {
		if p.behind[e.Lane()] {
			p.leave(e, nil)
			continue
		}
		free = append(free, e)
	}
	return free
}

// store stores events in one statement or, if Postgres refuses that because of some
// of them, in smaller groups.
func (p *pass) store(ctx context.Context, events []drainedEvent) error {
	if len(events) == 0 {
		return nil
	}
	all := make([]Event, len(events))
	for n, e := range events {
		all[n] = e.Event
	}
	results, err := p.sink.Insert(ctx, all)
	if err == nil {
		for n, r := range results {
			if r.Err != nil {
				p.leave(events[n], r.Err)
			} else if r.IsNew {
				p.stored++
			}
		}
		return nil
	}
	switch means := p.sink.Meaning(err); {
	case means == Closed, means == Unavailable:
		return err
	case len(events) > 1 && means == Held: // in eighths few and many such events are found in a short time
		return p.storeGroups(ctx, events, (len(events)+7)/8)
	case len(events) > 1:
		return p.storeEach(ctx, events)
	case means == Refused:
		p.refuse(ctx, events[0], err)
	default:
		p.leave(events[0], err)
	}
	return nil
}

// storeGroups stores events in groups of a size, those that are behind none that is
// left.
func (p *pass) storeGroups(ctx context.Context, events []drainedEvent, size int) error {
	for group := range slices.Chunk(events, size) {
		if err := p.store(ctx, p.notBehind(group)); err != nil {
			return err
		}
	}
	return nil
}

// storeEach stores events one by one. If the first few all fail it is not because of
// them, unless their rows are held.
func (p *pass) storeEach(ctx context.Context, events []drainedEvent) error {
	const few = 8
	before := p.left
	for n, e := range events {
		if p.left-before == n && n == few && p.sink.Meaning(p.cause) != Held {
			return fmt.Errorf("storing events: %w", p.cause)
		}
		if err := p.store(ctx, p.notBehind([]drainedEvent{e})); err != nil {
			return err
		}
	}
	return nil
}

// leave leaves an event to the next pass, and those of its lane that follow.
func (p *pass) leave(e drainedEvent, cause error) {
	e.file.left = true
	p.behind[e.Lane()] = true
	p.left++
	if p.cause == nil {
		p.cause = cause
	}
}

// refuse gives an event up. Others do not wait for it.
func (p *pass) refuse(ctx context.Context, e drainedEvent, cause error) {
	e.file.refused = append(e.file.refused, e.record)
	p.sink.Log(ctx, slog.LevelError, "webhook spool: Postgres refuses an event that the provider was told is kept; "+
		"have the provider deliver it again once what the error says is put right", e.Event, cause, slog.String("file", e.file.Name))
}

// finish removes a file after its events are stored, and sets aside the rest.
func (p *pass) finish(ctx context.Context, f *drainedFile) {
	if f.left {
		return
	}
	p.files++
	if len(f.refused) > 0 {
		name, err := p.dir.SetAsideRefused(f.File, f.refused)
		if err != nil {
			p.postpone(ctx, f, err)
			return
		}
		p.logFile(ctx, "webhook spool: refused events are set aside; delete the file once they are delivered again", name, len(f.refused))
	}
	if f.damaged == 0 {
		if err := p.dir.Remove(f.File); err != nil {
			p.sink.Log(ctx, slog.LevelError, "webhook spool: a file whose events are stored cannot be deleted: see that the disk can be written to", nil, err)
		}
		return
	}
	name, err := p.dir.SetAsideDamaged(f.File)
	if err != nil {
		p.postpone(ctx, f, err)
		return
	}
	p.logFile(ctx, "webhook spool: the disk has damaged events that the provider was told are kept; have the provider deliver again what "+
		"it sent at the time in the file's name, or read from its API what has changed since, then delete the file", name, f.damaged)
}

// postpone keeps a file with all other events stored until it can be set aside.
// Deliveries do not wait for that.
func (p *pass) postpone(ctx context.Context, f *drainedFile, cause error) {
	p.dir.Postpone(f.File)
	p.sink.Log(ctx, slog.LevelError, "webhook spool: a file with refused or damaged events cannot be set aside: it is tried again once the disk can be written to", nil, cause)
}

func (p *pass) logFile(ctx context.Context, message, name string, events int) {
	p.sink.Log(ctx, slog.LevelError, message, nil, nil, slog.String("file", name), slog.Int("events", events))
}
