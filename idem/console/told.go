package console

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// told returns the text that people see of an error. Where Postgres is not reached, that names its
// host and role, and is for the log.
func (v *visit) told(err error) (status int, text string) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status, v.say(r.text, r.args...)
	}
	v.Logger.ErrorContext(v.r.Context(), "a page of the console failed", slog.String("error", err.Error()))
	if pgtx.IsReadOnly(err) {
		return http.StatusServiceUnavailable, v.say("Postgres takes no writes: it is a replica, as after a failover, or its transactions are read-only by default. Connect the application to the primary.")
	}
	if hasNoAnswer(err) {
		return http.StatusServiceUnavailable, v.say("Postgres does not answer in time: it is unavailable, busy, or its tables are locked. The error is in this application's log.")
	}
	return http.StatusInternalServerError, err.Error()
}

// hasNoAnswer reports whether Postgres was not reached, or did not answer in time.
func hasNoAnswer(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network || errors.Is(err, io.ErrUnexpectedEOF) || pgtx.TookTooLong(err) || pgtx.SQLState(err) != "" && pgtx.Unavailable(err)
}
