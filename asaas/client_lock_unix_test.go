//go:build unix && !solaris && !illumos && !aix

package asaas_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// A process that was stopped keeps its lock.
func TestALockThatNobodyGivesBackIsNotWaitedForWithoutEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newClient, removed := removing(t, dir)
	if err := newClient().RemoveBackoff(t.Context(), webhookID); err != nil {
		t.Fatal(err)
	}
	notes, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("the notes are %v, %v", notes, err)
	}
	note, err := os.OpenFile(notes[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { note.Close() })
	if err := errors.Join(note.Truncate(0), syscall.Flock(int(note.Fd()), syscall.LOCK_EX)); err != nil {
		t.Fatal(err)
	}
	client := newClient()
	client.Timeout = time.Millisecond
	err = client.RemoveBackoff(t.Context(), webhookID)
	if e, ok := errors.AsType[*asaas.APIError](err); !ok || e.Outcome != asaas.CallNotDelivered || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got the error %v", err)
	}
	if err := note.Close(); err != nil {
		t.Fatal(err)
	}
	client.Timeout = time.Minute
	if err := client.RemoveBackoff(t.Context(), webhookID); err != nil || removed.Load() != 2 {
		t.Errorf("once the lock is gone: %d removals, %v", removed.Load(), err)
	}
}
