//go:build unix && !solaris && !illumos && !aix

package asaas

import (
	"os"
	"syscall"
)

// lock waits until f is this process's alone. Others hold it for a moment.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
