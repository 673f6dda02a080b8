package asaas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// ReasonOrdinaryEvent refuses an event that was sent to a [WithdrawalValidator].
const ReasonOrdinaryEvent idem.Reason = "ordinary_event"

// WithdrawalValidator answers Asaas's other webhook: before money leaves the
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
type WithdrawalValidator struct {
	// Tokens are the tokens that verify, any of them. Default: the one given to
	// NewWithdrawalValidator; have the old one too during a rotation.
	Tokens []string

	// AllowFrom and ClientAddrHeader are the addresses that may ask, see
	// [Dispatcher]. Default: nil, any address may.
	AllowFrom        []netip.Prefix
	ClientAddrHeader string

	// MaxBody is the number of bytes of a body that are read; a larger one is answered
	// with 413. Default: 1 MiB.
	MaxBody int64

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

	decide func(context.Context, *Withdrawal) (Decision, error)
}

var _ http.Handler = (*WithdrawalValidator)(nil)

// NewWithdrawalValidator returns a validator that has decide decide, with its
// settings at their defaults. An empty token never verifies. It panics where
// decide is nil.
//
// Approve only a withdrawal that your application itself has asked for: look it up, a transfer by the
// ExternalReference that the application sent, and compare the amount. The id is known only after Asaas's
// answer, which may come later than the question. After an error, or if an answer is lost, Asaas asks
// again, up to three times in all, so decide must give the same answer again. Its context ends at Timeout, and as soon as
// Asaas hangs up.
func NewWithdrawalValidator(token string, decide func(ctx context.Context, w *Withdrawal) (Decision, error)) *WithdrawalValidator {
	if decide == nil {
		panic("asaas: the function that decides about withdrawals is nil")
	}
	return &WithdrawalValidator{
		Tokens:  []string{token},
		MaxBody: 1 << 20,
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
//	413  the body is larger than MaxBody
//	503  undecided: the function failed or was late, or the body cannot be read; or there is no token
func (v *WithdrawalValidator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &question{w: w, r: r, start: time.Now(), logger: v.Logger}
	q.readBefore(q.start.Add(v.Timeout))
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		q.reject(http.StatusMethodNotAllowed, fmt.Errorf("asaas: method is %s: a withdrawal is asked about with a POST", r.Method))
		return
	}
	if err := v.verify(r); err != nil {
		q.refuse(err)
		return
	}
	body, status, err := q.read(v.MaxBody)
	if err != nil {
		q.reject(status, err)
		return
	}
	withdrawal, err := parseWithdrawal(body)
	switch {
	case errors.Is(err, errOrdinaryEvent):
		q.refuse(refuse(ReasonOrdinaryEvent, "this URL is asked about withdrawals, an event would be lost here: "+
			"point the webhook at the URL of your event receiver, where Asaas will deliver this event again"))
	case err != nil:
		q.fail(&Withdrawal{}, err)
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
func (v *WithdrawalValidator) verify(r *http.Request) error {
	if err := checkAddress(r, v.AllowFrom, v.ClientAddrHeader); err != nil {
		return err
	}
	return Verify(r.Header, nil, v.Tokens...)
}

// verdict is the result of the application's function.
type verdict struct {
	decision Decision
	err      error
}

// decision runs the application's function, and returns an error where it
// does not decide in time. A function that ignores its context goes on alone.
func (v *WithdrawalValidator) decision(ctx context.Context, start time.Time, w *Withdrawal) (Decision, error) {
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

func (v *WithdrawalValidator) run(ctx context.Context, w *Withdrawal, decided chan<- verdict) {
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
