//go:build long

package postgres

import (
	"os"
	"syscall"
	"testing"
)

func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, end := range []struct {
		name, act string
		signal    syscall.Signal
	}{
		{name: "when main returns", act: "return"},
		{name: "after os.Exit", act: "exit"},
		{name: "after log.Fatal", act: "fatal"},
		{name: "after a panic", act: "panic"},
		{name: "after Ctrl-C", act: "stay", signal: syscall.SIGINT},
		{name: "after kill -9", act: "stay", signal: syscall.SIGKILL},
		{name: "when it ends between a crash and the next start", act: "crashed"},
		{name: "when it ends before Postgres is up", act: "hasty"},
		{name: "when it ends before a copy is up", act: "copying"},
		{name: "while its replica runs", act: "replicated"},
	} {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			a := play(t, end.act, "IDEMTEST_CACHE="+t.TempDir())
			dir := a.line(t)
			if _, err := os.Stat(dir); end.act == "stay" && err != nil {
				t.Error(err)
			}
			if end.signal != 0 {
				check(t, a.Process.Signal(end.signal))
			}
			a.awaitFamily(t)
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", dir, err)
			}
		})
	}
}
