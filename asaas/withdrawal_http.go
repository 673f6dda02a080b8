package asaas

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// question is one request of Asaas about a withdrawal.
type question struct {
	w      http.ResponseWriter
	r      *http.Request
	start  time.Time
	logger *slog.Logger // nil logs nothing
}

// readBefore sets the time until which the body may arrive; none, for the zero
// time. Where the server has such a time, or w is wrapped, that stays.
func (q *question) readBefore(end time.Time) {
	if server, ok := q.r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.ReadTimeout == 0 {
		_ = http.NewResponseController(q.w).SetReadDeadline(end)
	}
}

// read reads the body whole, at most limit bytes.
func (q *question) read(limit int64) (body []byte, status int, err error) {
	if q.r.ContentLength > limit {
		return nil, http.StatusRequestEntityTooLarge, tooLarge(limit)
	}
	body, err = io.ReadAll(http.MaxBytesReader(q.w, q.r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge, tooLarge(limit)
	case err != nil:
		return nil, http.StatusRequestTimeout, fmt.Errorf("asaas: the body did not arrive whole: %w", err)
	}
	q.readBefore(time.Time{}) // else the connection's end cannot be told from it
	return body, 0, nil
}

func tooLarge(limit int64) error {
	return fmt.Errorf("asaas: the body is larger than %d bytes: raise MaxBody if it is genuine", limit)
}

// reject answers a request that is no question about a withdrawal.
func (q *question) reject(status int, err error) {
	q.log(slog.LevelWarn, "rejected", slog.String("error", err.Error()))
	respond(q.w, status, []byte(`{"received":false}`))
}

// refuse answers a request that is not genuine, or could not be verified.
func (q *question) refuse(err error) {
	q.log(slog.LevelWarn, "refused", slog.String("error", err.Error()))
	status, reason := http.StatusUnauthorized, idem.Reason("")
	if refusal, ok := errors.AsType[*idem.Refusal](err); ok {
		reason = refusal.Reason
	}
	if reason == ReasonNotConfigured {
		status = http.StatusServiceUnavailable
	}
	respond(q.w, status, fmt.Appendf(nil, `{"received":false,"reason":%q}`, string(reason)))
}

// answer answers with the application's decision.
func (q *question) answer(about *Withdrawal, d Decision) {
	q.log(slog.LevelInfo, "decided", append(subject(about), slog.Bool("approved", d.Approved()))...)
	body, _ := json.Marshal(d) // two strings
	respond(q.w, http.StatusOK, body)
}

// fail answers where there is no decision, so that Asaas asks again.
func (q *question) fail(about *Withdrawal, err error) {
	q.log(slog.LevelError, "undecided", append(subject(about), slog.String("error", "asaas: the withdrawal is undecided, and Asaas asks again, three times in all: "+err.Error()))...)
	respond(q.w, http.StatusServiceUnavailable, []byte(`{"received":false,"reason":"undecided"}`))
}

func subject(about *Withdrawal) []slog.Attr {
	return []slog.Attr{slog.String("type", string(about.Type)), slog.String("id", about.ID())}
}

func (q *question) log(level slog.Level, outcome string, attrs ...slog.Attr) {
	if q.logger == nil {
		return
	}
	attrs = append([]slog.Attr{
		slog.String("outcome", outcome),
		slog.String("source", definition.Source),
		slog.Duration("duration", time.Since(q.start)),
	}, attrs...)
	defer func() { _ = recover() }() // a panic of the logger cannot be reported, and Asaas waits
	q.logger.LogAttrs(q.r.Context(), level, "withdrawal "+outcome, attrs...)
}

func respond(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
