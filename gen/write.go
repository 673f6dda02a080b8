package main

import (
	"bytes"
	"fmt"
	"os"
)

// file is a generated file.
type file struct {
	path    string
	content []byte
}

// write leaves a file alone that is right, and so the build caches that look at
// its time.
func write(f file) error {
	if old, err := os.ReadFile(f.path); err == nil && bytes.Equal(old, f.content) {
		return nil
	}
	if err := os.WriteFile(f.path, f.content, 0o644); err != nil {
		return fmt.Errorf("gen: cannot write into the package directory, create it first: %w", err)
	}
	return nil
}
