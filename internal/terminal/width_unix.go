//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package terminal

import (
	"os"
	"syscall"
	"unsafe"
)

// size is a struct winsize.
type size struct{ rows, columns, x, y uint16 }

// columns returns the width of a terminal, 0 if it does not say.
func columns(f *os.File) int {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	var s size
	err = raw.Control(func(fd uintptr) {
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&s))); failed != 0 {
			s.columns = 0
		}
	})
	if err != nil {
		return 0
	}
	return int(s.columns)
}
