//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// group is the process group of a command.
type group struct {
	id    int
	guard *exec.Cmd
	stdin io.Closer // of the guard
}

// guard kills a group when its stdin ends.
const guard = `trap '' HUP INT TERM QUIT; read -r _; kill -KILL "-$1"`

// startGroup starts the command in a process group of its own, which signals to this one do not reach. The group
// ends with this program.
func startGroup(cmd *exec.Cmd) (*group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &group{id: cmd.Process.Pid, guard: exec.Command("sh", "-c", guard, "guard", strconv.Itoa(cmd.Process.Pid))}
	g.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if g.stdin, err = g.guard.StdinPipe(); err == nil {
		err = g.guard.Start()
	}
	if err != nil {
		g.signal(syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
	}
	return g, err
}

func (g *group) signal(s os.Signal) { _ = syscall.Kill(-g.id, s.(syscall.Signal)) }

// end kills what the command has left.
func (g *group) end() {
	g.stdin.Close()
	_ = g.guard.Wait() // its status is that of kill
}

// exitStatus is that of a shell.
func exitStatus(ended *os.ProcessState) int {
	if w := ended.Sys().(syscall.WaitStatus); w.Signaled() {
		return 128 + int(w.Signal())
	}
	return ended.ExitCode()
}
