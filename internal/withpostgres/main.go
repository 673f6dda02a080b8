// Withpostgres runs a command beside a Postgres of its own, which all test binaries share:
//
//	go run ./internal/withpostgres go test ./...
//
// The command has the server's URL in IDEMTEST_DATABASE_URL. If that is set already, no server is started.
// The exit status is the command's.
//
// When the command ends, or this program, or go run, even by kill -9, all of them end: the server, the
// command, and what it has left in its process group.
//
// Commits do not wait for the disk, and the data is in memory where that is possible.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/paghooks/paghooks/internal/postgres"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: withpostgres COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpostgres:", err)
		status = 1
	}
	os.Exit(status)
}

func run(command []string) (status int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, forwarded...)
	parent := os.Getppid()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if os.Getenv(postgres.Variable) == "" {
		server, errStart := postgres.Share(context.Background())
		if errStart != nil {
			return 0, errStart
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		cmd.Env = append(os.Environ(), postgres.Variable+"="+server.URL())
	}
	g, err := startGroup(cmd)
	if err != nil {
		return 0, err
	}
	defer g.end()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for alive := time.Tick(time.Second); ; {
		select {
		case s := <-signals:
			g.signal(s)
		case <-alive:
			if os.Getppid() != parent { // go run was killed
				g.signal(os.Kill)
			}
		case err := <-ended:
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				return exitStatus(exit.ProcessState), nil
			}
			return 0, err
		}
	}
}
