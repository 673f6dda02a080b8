package pgproxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Pooler gives each transaction to another session of Postgres, as PgBouncer
// does with pool_mode=transaction: its clients have no session of their own, and
// no prepared statements. Close it when the pools that it serves are closed.
type Pooler struct {
	sessions chan *pgconn.HijackedConn // those that are idle, the one that rested longest first
	startup  *pgconn.HijackedConn      // parameters for a client
}

// NewPooler opens so many sessions.
func NewPooler(ctx context.Context, url string, sessions int) (*Pooler, error) {
	p := &Pooler{sessions: make(chan *pgconn.HijackedConn, sessions)}
	for range sessions {
		conn, err := pgconn.Connect(ctx, url)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		session, err := conn.Hijack()
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.startup = session
		p.sessions <- session
	}
	return p, nil
}

// Close ends the sessions that are idle.
func (p *Pooler) Close() error {
	var err error
	for len(p.sessions) > 0 {
		err = errors.Join(err, (<-p.sessions).Conn.Close())
	}
	return err
}

// Through makes the connections of a pool clients of the pooler.
func (p *Pooler) Through(c *pgxpool.Config) {
	c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil // nothing leaves the process
	c.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go p.serve(ours)
		return theirs, nil
	}
}

func (p *Pooler) serve(client net.Conn) {
	defer client.Close()
	r := bufio.NewReaderSize(client, 1<<16)
	if _, err := readStartup(r); err != nil || p.welcome(client) != nil {
		return
	}
	for {
		m, err := readMessage(r)
		if err != nil || m.kind == 'X' {
			return
		}
		session := <-p.sessions
		if err := transact(client, r, session, m); err != nil {
			_ = session.Conn.Close()
			return
		}
		p.sessions <- session
	}
}

func (p *Pooler) welcome(client io.ReadWriter) error {
	b := pgproto3.NewBackend(client, client)
	b.Send(&pgproto3.AuthenticationOk{})
	for name, value := range p.startup.ParameterStatuses {
		b.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	b.Send(&pgproto3.BackendKeyData{ProcessID: p.startup.PID, SecretKey: p.startup.SecretKey})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	return b.Flush()
}

// transact forwards messages from m on, until the transaction that they make is
// over.
func transact(client io.Writer, r *bufio.Reader, session *pgconn.HijackedConn, m message) error {
	answers := bufio.NewReader(session.Conn)
	for {
		if _, err := session.Conn.Write(m.raw); err != nil {
			return err
		}
		if flushed(m.kind) {
			idle, err := reply(client, answers)
			if err != nil || idle {
				return err
			}
		}
		var err error
		if m, err = readMessage(r); err != nil {
			return err
		}
	}
}

// reply forwards the answers up to ReadyForQuery, and reports whether the session
// is outside of a transaction then.
func reply(client io.Writer, answers *bufio.Reader) (idle bool, err error) {
	for {
		m, err := readMessage(answers)
		if err != nil {
			return false, err
		}
		if _, err := client.Write(m.raw); err != nil || m.kind == 'Z' {
			return m.kind == 'Z' && m.body[0] == 'I', err
		}
	}
}
