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

// beginRemoval notes a removal here and for other processes, or returns how long
// it has to wait.
func (c *Client) beginRemoval(ctx context.Context, id string) (wait time.Duration, err error) {
	if wait := c.removals.begin(id, c.MinRemoveBackoff); wait > 0 || c.StateDir == "" || c.MinRemoveBackoff <= 0 {
		return wait, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err = c.withRemovalFile(ctx, id, func(f *os.File) error {
		now := time.Now()
		if at, ok := readTime(f); ok && !at.After(now) && now.Sub(at) < c.MinRemoveBackoff {
			wait = c.MinRemoveBackoff - now.Sub(at)
			return nil
		}
		return writeTime(f, now)
	})
	if err != nil || wait > 0 {
		c.removals.forget(id)
	}
	return wait, err
}

// forgetRemoval takes a note back.
func (c *Client) forgetRemoval(ctx context.Context, id string) {
	c.removals.forget(id)
	if c.StateDir != "" {
		_ = c.withRemovalFile(ctx, id, func(f *os.File) error { return f.Truncate(0) }) // or it is refused for a while, which does no harm
	}
}

// withRemovalFile opens the webhook's file in StateDir, alone among all processes.
func (c *Client) withRemovalFile(ctx context.Context, id string, do func(*os.File) error) error {
	name := fmt.Sprintf("%x.removed", sha256.Sum256([]byte(c.BaseURL+"\n"+id)))
	err := os.MkdirAll(c.StateDir, 0o700)
	if err != nil {
		return stateError(err)
	}
	f, err := os.OpenFile(filepath.Join(c.StateDir, name), os.O_RDWR|os.O_CREATE, 0o600)
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

// wholeSeconds rounds up, as a caller that waits that long must not be too early.
func wholeSeconds(d time.Duration) string {
	return (d + time.Second - 1).Truncate(time.Second).String()
}
