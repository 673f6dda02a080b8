package terminal_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/paghooks/paghooks/internal/terminal"
)

// openTerminal opens a terminal of this width.
func openTerminal(t *testing.T, columns uint16) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	control := func(request uintptr, argument unsafe.Pointer) {
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(argument)); failed != 0 {
			t.Fatal(failed)
		}
	}
	var unlock, number int32
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&[4]uint16{24, columns, 0, 0}))
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return slave
}

// Not parallel: it sets the environment.
func TestTheWidthIsThatOfTheTerminalUnlessCOLUMNSSaysIt(t *testing.T) {
	for _, c := range []struct {
		says    string
		columns uint16
		want    int
	}{
		{"", 132, 132},
		{"100", 132, 100},
		{"wide", 132, 132},
		{"-1", 132, 132},
		{"", 0, 80}, // a serial line for example
	} {
		t.Setenv("COLUMNS", c.says)
		stream := openTerminal(t, c.columns)
		if got := terminal.Width(stream); got != c.want || !terminal.Is(stream) {
			t.Errorf("COLUMNS=%s in a terminal of %d: %d, want %d", c.says, c.columns, got, c.want)
		}
	}
}
