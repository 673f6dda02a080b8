package idemtest

import (
	"context"

	"github.com/paghooks/paghooks/internal/postgres"
)

// Server is a running Postgres, with a schema to work in.
type Server struct{ server *postgres.Server }

// Start is [Pool] for programs: it finds or starts a Postgres as tests do, and
// makes a schema in it. The context bounds the start, not the server.
//
// Close the server at the end. A program that ends without doing so leaves
// nothing behind either, except its schema in a database that it was given.
func Start(ctx context.Context) (*Server, error) {
	s, err := postgres.Start(ctx)
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// URL returns the connection string of the server. Its search_path is a new schema,
// so that nothing that is in the database already is touched.
func (s *Server) URL() string { return s.server.URL() }

// Origin names the Postgres for people: "PostgreSQL 15.8 from
// /usr/lib/postgresql/15/bin".
func (s *Server) Origin() string { return s.server.Origin() }

// Close removes the schema, and stops the server if it was started for this.
// When it returns, they are gone.
func (s *Server) Close() error { return s.server.Close() }
