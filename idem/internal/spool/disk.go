package spool

import (
	"errors"
	"io"
	"os"
	"runtime"
)

// A [Dir] reads and changes files through a Disk. Tests put faults into it.
type Disk interface {
	ReadFile(name string) ([]byte, error)
	Create(name string) (Handle, error)
	Rename(from, to string) error
	Remove(name string) error
	SyncDir(path string) error
}

// Handle is a file that is being written.
type Handle interface {
	io.WriteCloser
	Sync() error
}

// System is the disk of this machine.
type System struct{}

// ReadFile returns a file's content.
func (System) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }

// Create creates a file that only its owner may read.
func (System) Create(name string) (Handle, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// Rename gives a file another name.
func (System) Rename(from, to string) error { return os.Rename(from, to) }

// Remove deletes a file.
func (System) Remove(name string) error { return os.Remove(name) }

// SyncDir flushes a directory, so that the names in it survive a loss of power.
func (System) SyncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil // where it cannot be asked for
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
