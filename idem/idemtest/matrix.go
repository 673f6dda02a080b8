package idemtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// matrix is every fault that an application is put through.
type matrix struct {
	testing.TB
	source    func(*pgxpool.Pool) idem.Source
	check     func(context.Context, *pgxpool.Pool) error
	byWorkers bool // an inbox receives, and its workers process

	url    string
	direct *pgxpool.Pool // no fault happens to it
	empty  string        // SQL that empties the schema
	stages []stage       // of each trial
}

// stage is a part of a trial: a delivery, or the work on one. It is done when
// it would not be tried again, which may be with an error: the event is parked.
type stage struct {
	name string
	once func(*trial) (done bool, err error) // tries it
}

// trial is one run of the application, on an empty schema.
type trial struct {
	*matrix
	proxy  *pgproxy.Proxy
	pool   *pgxpool.Pool // the application's, through the proxy
	app    idem.Source
	stored *idem.Processor // reads the events, on the direct pool
}
