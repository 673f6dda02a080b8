package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// process is a receiver or a worker of this program, in a process of its own.
type process struct {
	kind  string
	said  string // its first line: a receiver's address
	cmd   *exec.Cmd
	stdin io.Closer // it ends with this
}

func startProcess(kind, database string, verbose bool) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{kind: kind, cmd: exec.Command(program, "child", kind, database)}
	if verbose {
		p.cmd.Stderr = os.Stderr
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.said, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a %s does not start: see -v: %w", kind, err), p.kill())
	}
	p.said = strings.TrimSpace(p.said)
	return p, nil
}

// kill ends it by kill -9.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // killed
	return err
}

// stop has it end its work.
func (p *process) stop() error {
	err := p.stdin.Close()
	late := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	return errors.Join(err, p.cmd.Wait())
}

// fleet is the processes that run, and the balancer before the receivers.
type fleet struct {
	database string
	verbose  bool
	balancer *balancer
	running  []*process
}

func startFleet(database string, receivers, workers int, verbose bool) (*fleet, error) {
	f := &fleet{database: database, verbose: verbose}
	var err error
	if f.balancer, err = startBalancer(); err != nil {
		return nil, err
	}
	for n := range receivers + workers {
		kind := "receiver"
		if n >= receivers {
			kind = "worker"
		}
		p, err := startProcess(kind, database, verbose)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.running = append(f.running, p)
	}
	f.balance()
	return f, nil
}

func (f *fleet) balance() {
	var addresses []string
	for _, p := range f.running {
		if p.kind == "receiver" {
			addresses = append(addresses, p.said)
		}
	}
	f.balancer.to(addresses)
}

// replace kills one process of each kind, and starts others in their places.
func (f *fleet) replace() error {
	for _, kind := range []string{"receiver", "worker"} {
		for n, p := range f.running {
			if p.kind != kind {
				continue
			}
			if err := p.kill(); err != nil {
				return err
			}
			next, err := startProcess(kind, f.database, f.verbose)
			if err != nil {
				return err
			}
			f.running = append(append(f.running[:n:n], f.running[n+1:]...), next) // the next time it is another's turn
			break
		}
	}
	f.balance()
	return nil
}

func (f *fleet) close() (err error) {
	for _, p := range f.running {
		err = errors.Join(err, p.stop())
	}
	f.balancer.close()
	return err
}
