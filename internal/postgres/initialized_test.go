//go:build long

package postgres

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestCacheThatCannotBeWrittenIsDoneWithout(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.cache = filepath.Join(m.bin, "postgres", "cache") // a file has no folders
	for range 2 {
		m.play(t, "work").awaitFamily(t)
	}
	m.wantCalls(t, 2)
}

// machine has an empty cache, and an initdb that writes down each call.
type machine struct{ bin, cache, calls string }

func newMachine(t *testing.T) machine {
	t.Helper()
	bin, err := binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := machine{bin: openDir(t), cache: t.TempDir()}
	m.calls = filepath.Join(m.bin, "calls")
	check(t, os.WriteFile(m.calls, nil, 0o666))
	check(t, os.Chmod(m.calls, 0o666)) // for Postgres's account
	script(t, m.bin, "initdb", fmt.Sprintf("echo call >>'%s'; exec '%s/initdb' \"$@\"", m.calls, bin))
	script(t, m.bin, "postgres", fmt.Sprintf("exec '%s/postgres' \"$@\"", bin))
	return m
}

func (m machine) play(t *testing.T, act string) *actor {
	t.Helper()
	return play(t, act, "PATH="+m.bin+":"+os.Getenv("PATH"), "IDEMTEST_CACHE="+m.cache)
}

func (m machine) wantCalls(t *testing.T, want int) {
	t.Helper()
	if got := m.called(t); got != want {
		t.Errorf("initdb has run %d times, want %d", got, want)
	}
}

func (m machine) called(t *testing.T) int {
	t.Helper()
	calls, err := os.ReadFile(m.calls)
	check(t, err)
	return bytes.Count(calls, []byte("\n"))
}

// wantFiles returns the name of the last file in the cache.
func (m machine) wantFiles(t *testing.T, want int) (last string) {
	t.Helper()
	files, err := os.ReadDir(m.cache)
	check(t, err)
	if len(files) != want {
		t.Fatalf("the cache has the files %v, want %d", files, want)
	}
	return filepath.Join(m.cache, files[want-1].Name())
}
