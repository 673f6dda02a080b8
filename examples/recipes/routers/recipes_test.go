package routers_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/examples/recipes/routers"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/port"
	"github.com/paghooks/paghooks/internal/testkit"
)

// newInbox returns an inbox with a handler that sends the id of each charge.
func newInbox(t *testing.T) (inbox *idem.Inbox, handled <-chan string) {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	charges := make(chan string, 10)
	d := asaas.NewDispatcher(token)
	d.OnPaymentReceived(func(_ context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
		charges <- e.Payment.ID
		return nil
	})
	inbox = idem.NewInbox(pool, d)
	inbox.Logger = testkit.NoWarnings(t)
	return inbox, charges
}

// await waits for a server that has just been started.
func await(t *testing.T, addr string) {
	t.Helper()
	for {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/health/webhooks", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Errorf("health is answered %d", answer.StatusCode)
			}
			return
		}
		select {
		case <-time.After(5 * time.Millisecond): // it does not listen yet
		case <-t.Context().Done():
			t.Fatal(err)
		}
	}
}

func TestEachServerReceivesWorksAndStops(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(context.Context, string, *idem.Inbox) error{
		"chi": routers.Chi, "gin": routers.Gin, "echo": routers.Echo, "fiber": routers.InFiber,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inbox, handled := newInbox(t)
			addr := port.Address(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- serve(ctx, addr, inbox) }()
			await(t, addr)
			body := asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.id", "pay_1"))
			for range 2 { // the second is a duplicate
				r := asaastest.Request("http://"+addr+"/webhooks/asaas", token, body)
				r.RequestURI = ""
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				says, _ := io.ReadAll(answer.Body)
				answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					t.Fatalf("answered %d %s", answer.StatusCode, says)
				}
			}
			if charge := <-handled; charge != "pay_1" {
				t.Errorf("handled %s", charge)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if s, err := inbox.Stats(t.Context()); err != nil || s.Pending.Events != 0 || len(handled) != 0 {
				t.Errorf("%+v, %v; handled %d times more", s, err, len(handled))
			}
		})
	}
}

func TestOneProcessReceivesAndAnotherWorks(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	handledBy := make(chan string, 10)
	newInboxOf := func(process string) *idem.Inbox {
		events := asaas.NewDispatcher(token)
		events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { handledBy <- process; return nil })
		inbox := idem.NewInbox(pool, events)
		inbox.Logger = testkit.NoWarnings(t)
		return inbox
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 2)
	receiver, worker := port.Address(t), port.Address(t)
	go func() { ended <- routers.HandleOnly(ctx, worker, newInboxOf("the worker")) }()
	await(t, worker)
	go func() { ended <- routers.Receive(ctx, receiver, newInboxOf("the receiver")) }()
	await(t, receiver)

	r := asaastest.Request("http://"+receiver+"/webhooks/asaas", token, asaastest.Event("PAYMENT_RECEIVED"))
	r.RequestURI = ""
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if by := <-handledBy; answer.StatusCode != http.StatusOK || by != "the worker" {
		t.Errorf("answered %d, handled by %s", answer.StatusCode, by)
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A function that cannot listen says so, and leaves no workers.
func TestFiberThatCannotListenIsAnError(t *testing.T) {
	t.Parallel()
	inbox, _ := newInbox(t)
	if err := routers.InFiber(t.Context(), "256.256.256.256:1", inbox); err == nil {
		t.Error("there is no error")
	}
	inbox.Workers = 0
	if err := routers.InFiber(t.Context(), port.Address(t), inbox); err == nil {
		t.Error("there is no error of an inbox without workers")
	}
}

func TestALambdaStoresWhatItsURLGetsAndWorksBySchedule(t *testing.T) {
	t.Parallel()
	inbox, handled := newInbox(t)
	inbox.PollOnly, inbox.Logger = true, testkit.NoWarnings(t, "wrong_token")
	deliver, work := routers.Deliver(inbox), routers.Work(inbox)
	body := asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.id", "pay_1"))
	for _, c := range []struct {
		token  string
		body   string
		base64 bool
		want   int
	}{
		{"wrong", string(body), false, http.StatusUnauthorized},
		{token, string(body), false, http.StatusOK},
		{token, base64.StdEncoding.EncodeToString(body), true, http.StatusOK}, // the same event
	} {
		e := events.LambdaFunctionURLRequest{
			RawPath: "/webhooks/asaas", Body: c.body, IsBase64Encoded: c.base64, Headers: map[string]string{"asaas-access-token": c.token},
		}
		e.RequestContext.DomainName = "abc.lambda-url.sa-east-1.on.aws"
		e.RequestContext.HTTP.Method, e.RequestContext.HTTP.SourceIP = http.MethodPost, "52.67.12.206"
		if answer, err := deliver(t.Context(), e); err != nil || answer.StatusCode != c.want {
			t.Errorf("%+v is answered %d, %v; want %d", c, answer.StatusCode, err, c.want)
		}
	}
	if len(handled) != 0 {
		t.Error("it is handled before the schedule")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // as AWS gives it
	defer cancel()
	for _, do := range []string{"drain", "drain", "prune"} {
		if err := work(ctx, routers.Task{Do: do}); err != nil {
			t.Errorf("%s: %v", do, err)
		}
	}
	if len(handled) != 1 {
		t.Errorf("it is handled %d times, want once", len(handled))
	}
	if err := work(ctx, routers.Task{}); err == nil {
		t.Error("no task is no error")
	}
	over, end := context.WithTimeout(t.Context(), inbox.StopTimeout) // which leaves no time to work
	defer end()
	if err := work(over, routers.Task{Do: "drain"}); err != nil {
		t.Errorf("a drain that has no time left: %v", err)
	}
}
