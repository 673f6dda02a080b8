package withdrawal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/provider"
)

const source = "asaas"

// ReasonOrdinaryEvent refuses an event that was sent to a [Validator].
const ReasonOrdinaryEvent idem.Reason = "ordinary_event"

// Validator answers Asaas's other webhook: before money leaves the
// account, Asaas asks whether it may. It is an [http.Handler], to be mounted at
// a URL of its own.
//
// Only a [Decision] refuses, and a refusal is final: Asaas cancels the withdrawal. A withdrawal for
// which the function fails, panics or is late, one of a kind that this package does not know, and
// one that does not decode are answered with 503, and Asaas asks again. After three failures it cancels
// the withdrawal.
//
// The exported fields are settings: change them before the first request.
//
// See https://docs.asaas.com/docs/mecanismo-para-validacao-de-saque-via-webhooks.
type Validator struct {
	// Tokens are the tokens that verify, any of them. Default: the one given to
	// NewValidator; during a rotation add the old one.
	Tokens []string

	// AllowFrom and ClientAddrHeader are the addresses that may ask, see
	// [asaas.Dispatcher]. Default: nil, any address may.
	AllowFrom        []netip.Prefix
	ClientAddrHeader string

	// Timeout is the time that a decision may take, from the first byte on. Then the
	// answer is 503, whether the function has returned or not, and the value that
	// it returns later counts for nothing. Keep it below the 10 seconds that
	// Asaas waits. Default: 8 seconds.
	Timeout time.Duration

	// Logger gets a line per request, with the withdrawal's id but without
	// amounts, names or reasons: a withdrawal that could not be decided as an error, a request that
	// was not genuine as a warning, decisions as info; nil logs nothing.
	// Default: slog.Default().
	Logger *slog.Logger

	decide func(context.Context, *asaas.Withdrawal) (Decision, error)
}

var _ http.Handler = (*Validator)(nil)

// NewValidator returns a validator that calls decide for each question, with its
// settings at their defaults. An empty token never verifies. It panics where
// decide is nil.
//
// Approve only a withdrawal that your application itself has asked for: look it up, a transfer by the
// ExternalReference that the application sent, and compare the amount and the account that gets it. The id is known
// only after Asaas's answer, which may come later than the question: keep the first one that asks with a reference,
// and refuse a second, which is another transfer of the same money. After an error, or if an answer is lost, Asaas
// asks again, up to three times in all, so decide must give the same answer again. Its context ends at Timeout, and
// as soon as Asaas hangs up.
func NewValidator(token string, decide func(ctx context.Context, w *asaas.Withdrawal) (Decision, error)) *Validator {
	if decide == nil {
		panic("withdrawal: the function that decides about withdrawals is nil")
	}
	return &Validator{
		Tokens:  []string{token},
		Timeout: 8 * time.Second,
		Logger:  slog.Default(),
		decide:  decide,
	}
}

// ServeHTTP answers one request.
//
//	200  the decision
//	401  not genuine, or an event; the body names the reason, and decides nothing
//	405  not a POST
//	408  the body did not arrive whole
//	413  the body is larger than 1 MiB
//	503  undecided: the function failed or was late, or the body cannot be read; or there is no token
func (v *Validator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &question{w: w, r: r, start: time.Now(), logger: v.Logger}
	q.readBefore(q.start.Add(v.Timeout))
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		q.reject(http.StatusMethodNotAllowed, fmt.Errorf("withdrawal: method is %s: a withdrawal is asked about with a POST", r.Method))
		return
	}
	if err := v.verify(r); err != nil {
		q.refuse(err)
		return
	}
	body, status, err := q.read()
	if err != nil {
		q.reject(status, err)
		return
	}
	withdrawal, err := parse(body)
	switch {
	case errors.Is(err, errOrdinaryEvent):
		q.refuse(&idem.Refusal{Source: source, Reason: ReasonOrdinaryEvent, Hint: "this URL is asked about withdrawals, an event would be lost here: " +
			"point the webhook at the URL of your event receiver, where Asaas will deliver this event again"})
	case err != nil:
		q.fail(&asaas.Withdrawal{}, err)
	default:
		d, err := v.decision(r.Context(), q.start, withdrawal)
		if err != nil {
			q.fail(withdrawal, err)
			return
		}
		q.answer(withdrawal, d)
	}
}

// verify makes the checks that events get. It needs no body, so that a
// stranger's is not even read.
func (v *Validator) verify(r *http.Request) error {
	if err := provider.CheckSender(r, source, v.AllowFrom, v.ClientAddrHeader); err != nil {
		return err
	}
	return asaas.Verify(r.Header, nil, v.Tokens...)
}

// verdict is the result of the application's function.
type verdict struct {
	decision Decision
	err      error
}

// decision runs the application's function, and returns an error where it
// does not decide in time. A function that ignores its context goes on alone.
func (v *Validator) decision(ctx context.Context, start time.Time, w *asaas.Withdrawal) (Decision, error) {
	ctx, cancel := context.WithDeadline(ctx, start.Add(v.Timeout))
	defer cancel()
	decided := make(chan verdict, 1)
	go v.run(ctx, w, decided)
	select {
	case is := <-decided:
		return is.decision, is.err
	case <-ctx.Done():
		return Decision{}, fmt.Errorf("there was no decision in time: %w", ctx.Err())
	}
}

func (v *Validator) run(ctx context.Context, w *asaas.Withdrawal, decided chan<- verdict) {
	// The verdict if the function neither returns nor panics: runtime.Goexit.
	is := verdict{err: errors.New("the function that decides ended its goroutine")}
	defer func() {
		if p := recover(); p != nil {
			is.err = fmt.Errorf("the function that decides panicked: %v\n%s", p, debug.Stack())
		}
		decided <- is
	}()
	is.decision, is.err = v.decide(ctx, w)
}

// question is a request of Asaas about a withdrawal.
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

// maxBody is the number of bytes of a body that are read. A question has a few thousand.
const maxBody = 1 << 20

// read reads the body whole.
func (q *question) read() (body []byte, status int, err error) {
	body, err = io.ReadAll(http.MaxBytesReader(q.w, q.r.Body, maxBody))
	_, isLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case isLarge:
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("withdrawal: the body is larger than %d bytes, which no question is", maxBody)
	case err != nil:
		return nil, http.StatusRequestTimeout, fmt.Errorf("withdrawal: the body did not arrive whole: %w", err)
	}
	q.readBefore(time.Time{}) // the end of the connection looks the same
	return body, 0, nil
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
	if reason == idem.ReasonNotConfigured {
		status = http.StatusServiceUnavailable
	}
	respond(q.w, status, fmt.Appendf(nil, `{"received":false,"reason":%q}`, string(reason)))
}

// answer answers with the application's decision.
func (q *question) answer(about *asaas.Withdrawal, d Decision) {
	q.log(slog.LevelInfo, "decided", append(subject(about), slog.Bool("approved", d.Approved()))...)
	body, _ := json.Marshal(d) // two strings
	respond(q.w, http.StatusOK, body)
}

// fail answers where there is no decision, so that Asaas asks again.
func (q *question) fail(about *asaas.Withdrawal, err error) {
	q.log(slog.LevelError, "undecided", append(subject(about), slog.String("error", "withdrawal: the withdrawal is undecided, and Asaas asks again, three times in all: "+err.Error()))...)
	respond(q.w, http.StatusServiceUnavailable, []byte(`{"received":false,"reason":"undecided"}`))
}

func subject(about *asaas.Withdrawal) []slog.Attr {
	return []slog.Attr{slog.String("type", string(about.Type)), slog.String("id", about.ID())}
}

func (q *question) log(level slog.Level, outcome string, attrs ...slog.Attr) {
	if q.logger == nil {
		return
	}
	attrs = append([]slog.Attr{
		slog.String("outcome", outcome),
		slog.String("source", source),
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

// Format implements [fmt.Formatter]: every verb shows how many tokens there are,
// and none of them.
func (v Validator) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "withdrawal.Validator{%d tokens redacted}", len(v.Tokens))
}

// LogValue implements [slog.LogValuer]. It shows no token.
func (v Validator) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(v)) }

// MarshalJSON implements [json.Marshaler]. It shows no token.
func (v Validator) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%q", fmt.Sprint(v)), nil
}
