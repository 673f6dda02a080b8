package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/outbox"
	"github.com/paghooks/paghooks/idem/provider"
)

// unverified is a source of which a setting is missing, or not.
type unverified struct {
	*notes
	err error
}

func (u unverified) Configured() error { return u.err }

// The log says which it is: nothing is given, or it is not of the kind that verifies.
func TestServeWarnsAtTheStartWhyNothingCanBeVerified(t *testing.T) {
	t.Parallel()
	key := provider.Receiver{Definition: &provider.Definition{Source: "bank"}, Scheme: provider.RSA{}, Secrets: []string{"not a key"}}
	none := key
	none.Secrets = []string{""}
	for name, c := range map[string]struct {
		err  error
		want string // "" for no warning
	}{
		"configured":     {nil, ""},
		"another source": {errors.New("the vault is closed"), "all are answered 503: the vault is closed"},
		"no key":         {none.Configured(), "all are answered 503: the public keys given (1) are empty: is the environment variable set?"},
		"a bad key":      {key.Configured(), "all are answered 503: the public keys given (1) are no RSA keys as PEM"},
	} {
		s := newInboxApp(t)
		i := idem.NewInbox(s.pool, unverified{s.notes, c.err})
		i.Logger = s.logger()
		ctx, stop := context.WithCancel(t.Context())
		_, ended := s.served(ctx, i)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		log := s.logged()
		if warned := strings.Contains(log, "cannot be verified"); warned != (c.want != "") || !strings.Contains(log, c.want) {
			t.Errorf("%s: want %q in the log:\n%s", name, c.want, log)
		}
	}
}

// A blocked broker is one whose Publish returns when it is told to.
type blockedBroker struct{ entered, release chan struct{} }

func (b blockedBroker) Publish(context.Context, broker.Message) error {
	b.entered <- struct{}{}
	<-b.release
	return nil
}

// With the default of four connections, an inbox's three workers and an outbox's one
// would hold them all.
func TestADeliveryIsAnsweredWhileAllWorkersOfAnInboxAndAnOutboxAreBusy(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	entered, release := make(chan struct{}, 10), make(chan struct{})
	messages := outbox.New(s.pool, "shop", blockedBroker{entered, release})
	messages.Logger = s.logger()
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "emits" {
			return messages.Emit(ctx, broker.Message{Type: "order.paid", Body: []byte(n.ID)})
		}
		entered <- struct{}{}
		<-release
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	url, ended := s.servedWith(ctx, s.inbox, messages)
	s.url = url
	s.wantAnswer(paid("emits"), http.StatusOK)
	<-entered // the outbox's worker
	for n := range s.inbox.Workers {
		s.wantAnswer(fmt.Sprintf(`{"id":"busy-%d","type":"paid","order":"o%[1]d"}`, n), http.StatusOK)
		<-entered
	}
	s.wantAnswer(`{"id":"late","type":"paid","order":"late"}`, http.StatusOK)
	close(release)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if s.inbox.Workers != 2 || messages.Workers != 1 {
		t.Errorf("there are %d and %d workers, want 2 and 1, which leaves a connection", s.inbox.Workers, messages.Workers)
	}
	if strings.Contains(s.logged(), "pool_max_conns") {
		t.Errorf("the log warns:\n%s", s.logged())
	}
}

func TestServeWarnsOfWorkersThatLeaveNoConnection(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.inbox.Workers = 7
	ctx, stop := context.WithCancel(t.Context())
	_, ended := s.served(ctx, s.inbox)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if log := s.logged(); s.inbox.Workers != 7 || !strings.Contains(log, "set pool_max_conns higher than workers") || !strings.Contains(log, "workers=7 connections=4") {
		t.Errorf("there are %d workers, and the log says:\n%s", s.inbox.Workers, log)
	}
}

// Of two providers' inboxes none has all the workers.
func TestInboxesThatShareAPoolShareItsConnections(t *testing.T) {
	t.Parallel()
	s := openInboxApp(t, poolOf(t, 8))
	other := s.newInbox(s.pool)
	ctx, stop := context.WithCancel(t.Context())
	_, ended := s.servedWith(ctx, s.inbox, other)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := []int{min(s.inbox.Workers, other.Workers), max(s.inbox.Workers, other.Workers)}; got[0] != 3 || got[1] != 4 {
		t.Errorf("they have %v workers, want 3 and 4 of 8 connections", got)
	}
}

func TestTheLogSaysThatTheFirstEventIsDone(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(pay)
	for _, id := range []string{"e1", "e1", "e2"} {
		s.wantAnswer(paid(id), http.StatusOK)
	}
	var said []string
	for line := range strings.Lines(s.logged()) {
		if strings.Contains(line, "level=INFO") {
			said = append(said, line)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], "the first of this process") || !strings.Contains(said[0], "id=e1") {
		t.Errorf("the log says of two events that are done: %q", said)
	}
}
