package pgtx

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Connect returns a connection beside a pool, which may have none left. It is made as the pool makes its own, with the
// pool's configuration and hooks, and prepared as for a caller of Acquire: the hooks may have the password, or set the
// role. Connect returns when ctx ends, also if a hook hangs. The caller closes the connection.
func Connect(ctx context.Context, pool *pgxpool.Pool) (*pgx.Conn, error) {
	return Within(ctx, ErrHookHangs, func() (*pgx.Conn, error) { return connect(ctx, pool.Config()) }, Disconnect)
}

// connect makes a connection. config is a copy, which BeforeConnect may change.
func connect(ctx context.Context, config *pgxpool.Config) (*pgx.Conn, error) {
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, config, conn); err != nil {
		Disconnect(conn)
		return nil, err
	}
	return conn, nil
}

// prepare calls the hooks for a new connection that is acquired.
func prepare(ctx context.Context, config *pgxpool.Config, conn *pgx.Conn) error {
	if config.AfterConnect != nil {
		if err := config.AfterConnect(ctx, conn); err != nil {
			return err
		}
	}
	ok, err := true, error(nil)
	//lint:ignore SA1019 an application's pool may still have it
	before := config.BeforeAcquire
	switch {
	case config.PrepareConn != nil:
		ok, err = config.PrepareConn(ctx, conn)
	case before != nil:
		ok = before(ctx, conn)
	}
	if err == nil && !ok {
		err = errors.New("a hook of the pool refuses the connection")
	}
	return err
}

// Disconnect closes a connection of [Connect], within a second.
func Disconnect(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
