package asaas

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// removals remember when the penalty of a webhook was last removed.
type removals struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func newRemovals() *removals { return &removals{last: make(map[string]time.Time)} }

// begin notes a removal, or returns how long it has to wait.
func (r *removals) begin(id string, pause time.Duration) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for id, at := range r.last {
		if now.Sub(at) >= pause {
			delete(r.last, id)
		}
	}
	if at, ok := r.last[id]; ok {
		return pause - now.Sub(at)
	}
	r.last[id] = now
	return 0
}

func (r *removals) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, id)
}

// removalFile names the file of a webhook in a StateDir.
func removalFile(baseURL, id string) string {
	return fmt.Sprintf("%x.removed", sha256.Sum256([]byte(baseURL+"\n"+id)))
}

// withFile opens a file in a StateDir, alone among all processes.
func withFile(ctx context.Context, dir, name string, do func(*os.File) error) error {
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		return stateError(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return stateError(err)
	}
	defer f.Close() // which ends the lock
	if err := lock(ctx, f); err != nil {
		return stateError(err)
	}
	if err := do(f); err != nil {
		return stateError(err)
	}
	return nil
}

func stateError(err error) error {
	return fmt.Errorf("when it was done last cannot be noted for other processes, make the folder writable or choose another: %w", err)
}

func readTime(f *os.File) (time.Time, bool) {
	text, err := io.ReadAll(io.LimitReader(f, 100))
	if err != nil {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	return at, err == nil
}

func writeTime(f *os.File, at time.Time) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(at.UTC().Format(time.RFC3339Nano)), 0)
	return err
}
