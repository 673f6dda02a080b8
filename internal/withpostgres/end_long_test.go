//go:build unix && long

package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/internal/postgres"
)

func TestNoProcessOutlivesTheCommandOrTheProgram(t *testing.T) {
	t.Parallel()
	const command = `sleep 1000 & echo "$IDEMTEST_DATABASE_URL $$"; sleep 1000`
	for _, test := range []struct {
		name, act string
		end       func(p *program, command int) error
	}{
		{"kill -9 of the program", "run", func(p *program, _ int) error { return p.Process.Kill() }},
		{"kill -9 of go run", "go run", func(p *program, _ int) error { return p.Process.Kill() }},
		{"kill -9 of the command", "run", func(_ *program, command int) error { return syscall.Kill(command, syscall.SIGKILL) }},
		{"Ctrl-C", "run", func(p *program, _ int) error { return p.Process.Signal(os.Interrupt) }},
		{"timeout", "run", func(p *program, _ int) error { return p.Process.Signal(syscall.SIGTERM) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := play(t, test.act, postgres.Variable+"=", "sh", "-c", command)
			line, err := bufio.NewReader(p.stdout).ReadString('\n')
			if err != nil {
				t.Fatal(err, &p.stderr)
			}
			url, pid, _ := strings.Cut(strings.TrimSpace(line), " ")
			conn, err := pgx.Connect(t.Context(), url)
			check(t, err)
			defer conn.Close(t.Context())
			n, err := strconv.Atoi(pid)
			check(t, err)
			check(t, test.end(p, n))
			p.end(t)
			if err := conn.Ping(t.Context()); err == nil {
				t.Error("the server is still there")
			}
		})
	}
}
