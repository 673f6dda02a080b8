package notify_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/notify"
	"github.com/paghooks/paghooks/internal/testkit"
)

// sign says nothing of interest.
func sign(ctx context.Context, conn *pgx.Conn) error { return conn.Ping(ctx) }

// listen listens on a channel until stop, and returns what each wake-up sends to.
func listen(t *testing.T, pool *pgxpool.Pool, channel string) (woken chan struct{}, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	woken, ended := make(chan struct{}, 1000), make(chan error, 1)
	go func() { ended <- notify.Listen(ctx, pool, channel, func() { woken <- struct{}{} }, time.Hour, sign) }()
	return woken, func() error { cancel(); return <-ended }
}

func TestSendWakesEveryListenerOfItsChannel(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	const channel = `odd "channel"; select 1`
	one, stopOne := listen(t, pool, channel)
	two, stopTwo := listen(t, pool, channel)
	other, stopOther := listen(t, pool, "another channel")
	for _, woken := range []chan struct{}{one, two, other} {
		testkit.Next(t, woken) // once it listens, for what came before
	}
	sender := notify.NewSender(pool, channel)
	for range 3 {
		sender.Send()
		testkit.Next(t, one)
		testkit.Next(t, two)
	}
	for _, stop := range []func() error{stopOne, stopTwo, stopOther} {
		if err := stop(); err == nil {
			t.Error("Listen ended without an error")
		}
	}
	if len(other) > 0 {
		t.Error("a listener of another channel was woken")
	}
}

// A hook that asks for a password, say, and hangs.
func TestListenEndsThoughAHookOfThePoolHangs(t *testing.T) {
	t.Parallel()
	config := idemtest.Pool(t).Config()
	goOn := make(chan bool)
	defer close(goOn)
	config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { <-goOn; return nil }
	config.MinConns = 0
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := notify.Listen(ctx, pool, "", func() {}, time.Hour, sign); err == nil {
		t.Error("Listen ended without an error")
	}
}

// A wake-up is lost at most where another follows.
func TestManySendsAreFewNotificationsAndTheLastIsNotLost(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	woken, stop := listen(t, pool, "busy")
	testkit.Next(t, woken)
	sender := notify.NewSender(pool, "busy")
	for range 10_000 {
		sender.Send()
	}
	testkit.Next(t, woken)
	if n := len(woken); n > 1000/2 {
		t.Errorf("%d notifications", n)
	}
	for len(woken) > 0 {
		<-woken
	}
	sender.Send()
	testkit.Next(t, woken)
	_ = stop()
}

func TestListenEndsWhenItsConnectionBreaks(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	woken, ended := make(chan struct{}, 10), make(chan error, 1)
	go func() {
		ended <- notify.Listen(t.Context(), pool, "lost", func() { woken <- struct{}{} }, time.Hour, sign)
	}()
	testkit.Next(t, woken)
	_, err := pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
		where query in ('listen "lost"', '-- ping') and pid <> pg_backend_pid() and application_name = current_setting('application_name')`)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || t.Context().Err() != nil {
		t.Errorf("Listen = %v, want an error of the connection", err)
	}
}

func TestListenHoldsNoConnectionOfThePool(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	woken, stop := listen(t, pool, "beside")
	testkit.Next(t, woken)
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections of the pool are in use, want none", n)
	}
	_ = stop()
}
