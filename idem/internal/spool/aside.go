package spool

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// SetAsideDamaged gives f another name, which it returns, because some of its records
// are damaged. The others have been taken.
func (d *Dir) SetAsideDamaged(f File) (string, error) {
	from := filepath.Join(d.path, f.Name)
	to := strings.TrimSuffix(from, live) + damaged
	if err := d.disk.Rename(from, to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", d.noteWriting(err)
	}
	d.forget(f)
	d.countAside()
	return to, nil
}

// Postpone forgets a file that could not be set aside. A Scan finds it again once
// files can be written; its records are to be taken again then.
func (d *Dir) Postpone(f File) {
	d.mu.Lock()
	d.postponed[f.Name] = true // before a Scan could take it for another process's
	d.mu.Unlock()
	d.forget(f)
}

// SetAsideRefused writes records of f that no sink takes to a file of their own, and
// returns its name. f stays.
func (d *Dir) SetAsideRefused(f File, records [][]byte) (string, error) {
	var data []byte
	for _, r := range records {
		data = appendLine(data, r)
	}
	name := refusedName(f, len(records))
	err := d.write(name, data)
	if err == nil {
		err = d.disk.SyncDir(d.path)
	}
	if err != nil {
		return "", d.noteWriting(err)
	}
	d.countAside()
	return filepath.Join(d.path, name), nil
}
