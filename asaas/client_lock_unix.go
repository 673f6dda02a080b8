//go:build unix && !solaris && !illumos && !aix

package asaas

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock waits until f is this process's alone. Others hold it for a moment, unless
// they were stopped in it.
func lock(ctx context.Context, f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("another process keeps %s locked: %w", f.Name(), context.Cause(ctx))
		}
	}
}
