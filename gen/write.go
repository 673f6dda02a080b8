package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// file is a generated file.
type file struct {
	path    string
	content []byte
}

// write replaces the file in one step, so that a build that runs at the same
// time sees the old or the new one. A file that is right is left alone, and so
// are the build caches that look at its time.
func write(f file) error {
	if old, err := os.ReadFile(f.path); err == nil && bytes.Equal(old, f.content) {
		return nil
	}
	temp, err := os.CreateTemp(filepath.Dir(f.path), ".gen-*")
	if err != nil {
		return fmt.Errorf("gen: cannot write into the package directory, create it first: %w", err)
	}
	defer os.Remove(temp.Name()) // fails, as it should, once renamed
	_, err = temp.Write(f.content)
	if err == nil {
		err = temp.Chmod(0o644)
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("gen: cannot write %s: %w", f.path, err)
	}
	return nil
}
