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

// write leaves a file alone that is right, and so the build caches that look at
// its time.
func write(f file) error {
	if old, err := os.ReadFile(f.path); err == nil && bytes.Equal(old, f.content) {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(f.path), 0o755)
	if err == nil {
		err = os.WriteFile(f.path, f.content, 0o644)
	}
	if err != nil {
		return fmt.Errorf("gen: cannot write the package, see what is in the way: %w", err)
	}
	return nil
}
