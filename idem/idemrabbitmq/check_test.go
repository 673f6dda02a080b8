package idemrabbitmq_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem/idemrabbitmq"
)

func TestCheckNamesWhatWouldLoseConfirmedMessages(t *testing.T) {
	t.Parallel()
	n := running(t, shared) // its users are ours
	queue := declare(t, n.url(), nil)
	ch := channelOf(t, n.url())
	p := newPublisher(t, dialer(n.url()), "", queue)
	wantCheck := func(p *idemrabbitmq.Publisher, want string) {
		t.Helper()
		err := p.Check(t.Context())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check returned %v, want %q", err, want)
		}
	}
	wantCheck(p, "")
	wantCheck(newPublisher(t, dialer(n.url()), "amq.direct", queue+"nowhere"), "") // as is documented
	user := strconv.FormatInt(time.Now().UnixNano(), 36)
	n.ctl(t, "add_user", user, "password")
	n.ctl(t, "set_permissions", user, "", ".*", ".*")
	wantCheck(newPublisher(t, dialer(strings.Replace(n.url(), "guest:guest", user+":password", 1)), "", queue), "let the user configure it")

	if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
		t.Fatal(err)
	}
	wantCheck(p, "there is no such queue: declare it")
	if n, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil); err == nil {
		t.Error("Check has made the queue ", n.Name)
	}
	ch = channelOf(t, n.url())
	if _, err := ch.QueueDeclare(queue, false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	wantCheck(p, "is not durable") // on the connection that it has
	wantCheck(newPublisher(t, dialer(n.url()), "", queue), "is not durable")
}

func TestCheckEndsWithItsContextWhileTheBrokerHangs(t *testing.T) {
	t.Parallel()
	n := ownNode(t)
	p := newPublisher(t, dialer(n.url()), "", declare(t, n.url(), nil))
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	resume := n.hang(t)
	defer resume()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := p.Check(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Check returned %v, want its context's error", err)
	}
}
