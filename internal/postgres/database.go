package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// given returns the server of a connection string, with a database of this program's own
// in it. The schemas of one database share its notifications: another program's would
// hide a lost notification of this program.
func given(ctx context.Context, dsn string) (*Server, error) {
	conn, err := reach(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("idemtest: %s is set but cannot be used: correct it, or unset it to have a Postgres started: %w", Variable, err)
	}
	defer conn.Close(ctx)
	s := &Server{url: dsn, origin: product(conn) + " at " + Variable, close: func() error { return nil }}
	dropAbandoned(ctx, conn)
	if err := s.own(ctx, conn); err == nil {
		return s, nil
	} else if ctx.Err() != nil {
		return nil, err
	} else {
		fmt.Fprintf(os.Stderr, "idemtest: the tests share the database of %s, and its notifications, with other programs: "+
			"let its role create databases: %v\n", Variable, err)
	}
	if s.admin, err = pgxpool.New(ctx, dsn); err != nil {
		return nil, err
	}
	return s, nil
}

func reach(ctx context.Context, dsn string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience) // a host that does not answer
	defer cancel()
	return pgx.Connect(ctx, dsn)
}

// mark is the comment of databases that other programs drop when they have no connections.
// A database gets it once its program is connected.
const mark = "idemtest: of a test binary, and dropped by the next one"

// own makes the program's database, which Close drops. A test binary does not close its
// server: the next one drops the database.
func (s *Server) own(ctx context.Context, conn *pgx.Conn) error {
	name := uniqueName(filepath.Base(os.Args[0]))
	dsn, err := withDatabase(s.url, name)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `create database `+name); err != nil {
		return err
	}
	pool, err := stay(ctx, dsn)
	if err == nil {
		_, err = pool.Exec(ctx, `comment on database `+name+` is '`+mark+`'`)
	}
	if err != nil {
		_, errDrop := conn.Exec(ctx, `drop database `+name+` with (force)`)
		return errors.Join(err, errDrop)
	}
	server := s.url
	s.url, s.admin = dsn, pool
	s.close = func() error { return dropDatabase(server, name) }
	return nil
}

// stay returns a pool that always has a connection.
func stay(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MinConns, config.MaxConnLifetime = 1, 24*time.Hour
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

func dropDatabase(server, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err == nil {
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, `drop database `+name+` with (force)`)
	}
	if err != nil {
		return fmt.Errorf("idemtest: database %s stays behind: drop it by hand: %w", name, err)
	}
	return nil
}

// dropAbandoned drops the databases of programs that have ended. Other programs may do so
// at the same time, and the role may not have the right: no error matters.
func dropAbandoned(ctx context.Context, conn *pgx.Conn) {
	rows, _ := conn.Query(ctx, `select datname from pg_database d where shobj_description(oid, 'pg_database') = $1
		and not exists (select from pg_stat_activity where datid = d.oid and backend_type is distinct from 'autovacuum worker')`, mark)
	names, _ := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		_, _ = conn.Exec(ctx, `drop database `+pgx.Identifier{name}.Sanitize())
	}
}
