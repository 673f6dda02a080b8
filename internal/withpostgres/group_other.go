//go:build !unix

package main

import (
	"os"
	"os/exec"
)

var forwarded = []os.Signal{os.Interrupt}

// group is a command alone: there are no process groups here.
type group struct{ process *os.Process }

func startGroup(cmd *exec.Cmd) (*group, error) {
	err := cmd.Start()
	return &group{cmd.Process}, err
}

func (g *group) signal(os.Signal) { _ = g.process.Kill() }

func (g *group) end() {}

func exitStatus(ended *os.ProcessState) int { return ended.ExitCode() }
