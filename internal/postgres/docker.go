package postgres

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const image = "postgres:17-alpine"

// inContainer runs as the container's first process. The container is gone
// when it ends, which is when stdin ends, which is when this process ends.
const inContainer = "docker-entrypoint.sh postgres -c max_connections=1000 -c fsync=off -c full_page_writes=off >&2 & read -r _"

// startDocker starts Postgres in a container, and fetches its image the first
// time.
func startDocker(ctx context.Context) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	docker, err := exec.LookPath("docker")
	if err != nil {
		return nil, absent("not on PATH")
	}
	name := uniqueName("docker")
	cmd := exec.Command(docker, "run", "--rm", "-i", "--name", name, "-p", "127.0.0.1::5432",
		"-e", "POSTGRES_HOST_AUTH_METHOD=trust", image, "sh", "-c", inContainer)
	detach(cmd)
	l, err := newLeash(cmd)
	if err != nil {
		return nil, absent(err.Error())
	}
	s := &Server{close: l.close}
	if err := s.await(ctx, docker, name, l); err != nil {
		l.close()
		return nil, err
	}
	return s, nil
}

// await tries to connect until that succeeds, or the container is gone.
func (s *Server) await(ctx context.Context, docker, container string, l *leash) error {
	for retry := time.NewTicker(100 * time.Millisecond); ; {
		if err := s.try(ctx, docker, container); err == nil {
			return nil
		}
		select {
		case <-retry.C:
		case <-l.stdout:
			return absent(l.stderr.String())
		case <-ctx.Done():
			return fmt.Errorf("idemtest: the container of %s does not answer: %w", image, context.Cause(ctx))
		}
	}
}

func (s *Server) try(ctx context.Context, docker, container string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	address, err := exec.CommandContext(ctx, docker, "port", container, "5432/tcp").Output()
	if err != nil {
		return err
	}
	s.url = "postgres://postgres@" + strings.TrimSpace(string(address)) + "/postgres?sslmode=disable"
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	s.origin = product(conn) + " from Docker's " + image
	return conn.Close(ctx)
}
