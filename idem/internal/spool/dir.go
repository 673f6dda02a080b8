package spool

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Dir is a directory of files with records. Its methods may be called from
// several goroutines at once. Several processes may use one directory: a file that
// another one has removed has been taken.
type Dir struct {
	path string
	disk Disk
	tag  string

	writing sync.Mutex // held while a file is written, so that files appear in the order of their names

	mu        sync.Mutex
	files     []File          // by name
	unremoved map[string]bool // files that are still there after their records have been taken
	held      int             // records in files
	size      int64           // of files
	last      int64           // time in the latest name
	postponed map[string]bool // files that could not be set aside, until files can be written again
	aside     int             // files with records that were refused or damaged, at the last Scan
	faults    Faults
	tried     time.Time // when a file was last written, or could not be
}

// Faults are the errors of the disk that have not passed.
type Faults struct {
	List  error // the directory could not be read
	Read  error // a file could not be read
	Write error // nothing can be written, and Put keeps nothing
}

// Open opens the directory at path, in a parent that must exist, with all files in it.
// Where files can be read and none can be written it succeeds, and Faults says so.
func Open(path string, disk Disk) (*Dir, error) {
	tag := make([]byte, 4)
	_, _ = rand.Read(tag) // does not fail
	d := &Dir{path: path, disk: disk, tag: fmt.Sprintf("%x", tag), unremoved: make(map[string]bool), postponed: make(map[string]bool)}
	err := os.Mkdir(path, 0o700)
	if _, unread := d.Scan(time.Time{}); unread != nil {
		if errors.Is(err, os.ErrExist) {
			err = nil
		}
		return nil, errors.Join(err, unread)
	}
	d.CheckWriting()
	return d, nil
}

// Faults returns the errors of the disk that have not passed.
func (d *Dir) Faults() Faults {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.faults
}

// checkEvery is the time for which files count as writable after one was written.
const checkEvery = time.Minute

// CheckWriting finds out whether files can be written, unless one was lately.
func (d *Dir) CheckWriting() {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	unsure := d.faults.Write != nil || time.Since(d.tried) > checkEvery
	d.mu.Unlock()
	if unsure {
		_ = d.tryWriting()
	}
}

// probeSize is that of a block: a shorter file may need none.
const probeSize = 4096

// tryWriting writes a file that is not kept. The caller holds d.writing.
func (d *Dir) tryWriting() error {
	probe := "probe-" + d.tag + temporary
	err := d.disk.SyncDir(filepath.Dir(d.path)) // or the directory itself may not survive a loss of power
	if err == nil {
		err = d.write(probe, make([]byte, probeSize))
	}
	if err == nil {
		err = errors.Join(d.disk.Remove(filepath.Join(d.path, probe)), d.disk.SyncDir(d.path))
	}
	return d.noteWriting(err)
}

// noteWriting notes whether files can be written, which err says and it returns.
func (d *Dir) noteWriting(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.Write, d.tried = err, time.Now()
	return err
}

// Put writes records, which must not contain line breaks, to one file. When it
// returns nil they are on the disk; after an error they may be.
func (d *Dir) Put(records [][]byte) error {
	var data []byte
	for _, r := range records {
		if bytes.IndexByte(r, '\n') >= 0 {
			return errors.New("a record contains a line break")
		}
		data = appendLine(data, r)
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.Faults().Write != nil {
		if err := d.tryWriting(); err != nil {
			return err
		}
	}
	d.mu.Lock()
	d.last = max(d.last+1, time.Now().UnixNano()) // clocks are set back
	f := File{newName(d.last, d.tag, len(records)), time.Unix(0, d.last), len(records), int64(len(data))}
	d.mu.Unlock()
	err := d.write(f.Name, data)
	if err == nil {
		d.add(f)
		err = d.disk.SyncDir(d.path)
	}
	return d.noteWriting(err)
}

// write writes a file under a temporary name and renames it.
func (d *Dir) write(name string, data []byte) error {
	name = filepath.Join(d.path, name)
	err := d.flush(name+temporary, data)
	if err == nil {
		err = d.disk.Rename(name+temporary, name)
	}
	if err != nil {
		_ = d.disk.Remove(name + temporary) // else Scan does
	}
	return err
}

// flush writes a file and waits for the disk.
func (d *Dir) flush(name string, data []byte) error {
	f, err := d.disk.Create(name)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// add adds a file, and reports whether it is new.
func (d *Dir) add(f File) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := d.find(f.Name)
	if known || d.unremoved[f.Name] {
		return false
	}
	delete(d.postponed, f.Name)
	d.files = slices.Insert(d.files, at, f)
	d.held += f.Records
	d.size += f.Size
	d.last = max(d.last, f.Time.UnixNano())
	return true
}

// Files returns the files with records that have not been taken, the oldest first.
func (d *Dir) Files() []File {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.files)
}

// Held returns how many records have not been taken, and the size of their files.
func (d *Dir) Held() (records int, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held, d.size
}

// Empty reports whether all records have been taken.
func (d *Dir) Empty() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.files) == 0
}

// Oldest returns when the oldest file was written; zero when there is none.
func (d *Dir) Oldest() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.files) == 0 {
		return time.Time{}
	}
	return d.files[0].Time
}

// Aside returns how many files there are with records that were refused or damaged.
func (d *Dir) Aside() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.aside
}

// Read returns the records of f that are whole, and how many are damaged. An error
// says nothing of the records: the disk may give them later. A file that is gone
// has none.
func (d *Dir) Read(f File) (records [][]byte, damaged int, err error) {
	data, err := d.disk.ReadFile(filepath.Join(d.path, f.Name))
	gone := errors.Is(err, os.ErrNotExist)
	if gone {
		err = nil
	}
	d.mu.Lock()
	d.faults.Read = err
	d.mu.Unlock()
	if gone || err != nil {
		return nil, 0, err
	}
	records = readLines(data)
	return records, max(0, f.Records-len(records)), nil
}

// Remove removes a file after its records have been taken. After an error they count as
// taken as long as the process lives.
func (d *Dir) Remove(f File) error {
	d.forget(f)
	return d.remove(f.Name)
}

func (d *Dir) remove(name string) error {
	err := d.disk.Remove(filepath.Join(d.path, name))
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil || errors.Is(err, os.ErrNotExist) {
		delete(d.unremoved, name)
		return nil
	}
	d.unremoved[name] = true
	return err
}

func (d *Dir) forget(f File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch at, known := d.find(f.Name); {
	case !known:
		return
	case at == 0: // without moving the others
		d.files = d.files[1:]
	default:
		d.files = slices.Delete(d.files, at, at+1)
	}
	d.held -= f.Records
	d.size -= f.Size
}

// find finds a file of d.files, or where it would be.
func (d *Dir) find(name string) (at int, known bool) {
	return slices.BinarySearchFunc(d.files, name, func(f File, name string) int { return strings.Compare(f.Name, name) })
}

func (d *Dir) countAside() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.aside++ // until the next Scan counts them
}

// abandoned is the age of a temporary file that is not written any more.
const abandoned = time.Minute

// Scan looks for files of other processes, written before a time, or at any time if
// that is zero; it reports whether there are any. It removes the files that dead processes
// were writing, and had not confirmed.
func (d *Dir) Scan(before time.Time) (found bool, err error) {
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.faults.List = err
	}()
	last, err := d.lastName()
	if err != nil {
		return false, err
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return false, err
	}
	aside := 0
	for _, entry := range entries {
		name := entry.Name()
		switch f, ok := parseName(name); {
		case strings.HasSuffix(name, refused), strings.HasSuffix(name, damaged):
			aside++
		case strings.HasSuffix(name, temporary):
			if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
				_ = d.disk.Remove(filepath.Join(d.path, name))
			}
		case !ok, name > last, !entry.Type().IsRegular(), d.isKnown(name):
		case d.isUnremoved(name):
			_ = d.remove(name)
		case d.isPostponed(name):
			if d.Faults().Write == nil {
				found = d.addFound(f, entry) || found
			}
		case !before.IsZero() && !f.Time.Before(before):
		default:
			found = d.addFound(f, entry) || found
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.aside = aside
	return found, nil
}

func (d *Dir) addFound(f File, entry os.DirEntry) (isNew bool) {
	if info, err := entry.Info(); err == nil { // else Read has the same error, or it is gone
		f.Size = info.Size()
	}
	return d.add(f)
}

// lastName is the latest of the files' names. A list that is read while a process
// writes may lack a file and have a later one; but a file that is earlier than one in a list
// is in the next list.
func (d *Dir) lastName() (last string, err error) {
	entries, err := os.ReadDir(d.path)
	for _, entry := range entries {
		if _, ok := parseName(entry.Name()); ok {
			last = entry.Name() // they are sorted
		}
	}
	return last, err
}

func (d *Dir) isKnown(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.find(name)
	return known
}

// isPostponed reports whether a file waits to be set aside.
func (d *Dir) isPostponed(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.postponed[name]
}

func (d *Dir) isUnremoved(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unremoved[name]
}
