package idemcmd

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/relay"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/testkit"
)

// taken notes what is published.
type taken []broker.Message

func (b *taken) Publish(_ context.Context, m broker.Message) error {
	*b = append(*b, m)
	return nil
}

// open is a source that takes every delivery.
type openNotes struct{ idem.Routes }

func (*openNotes) Name() string { return "notes" }
func (*openNotes) Open(*http.Request) (idem.Event, error) {
	return idem.Event{Source: "notes", ID: "relayed_1", Type: "paid", Payload: []byte(`{"id":"relayed_1","type":"paid"}`)}, nil
}

func TestReadmitAcceptsWhatTheRightSecretVerifies(t *testing.T) { // not parallel: it sets the environment
	const right, wrong = "the-secret-of-the-relay-in-front-of-it", "another-secret-of-thirty-two-characters"
	s := newShop(t)
	var published taken
	r := relay.New(&openNotes{}, &published, right)
	r.Logger = nil
	r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader("{}")))
	inbox := idem.NewInbox(s.pool, testkit.NewSource("notes"))
	inbox.Logger = nil
	for _, m := range published {
		if err := relay.To(inbox, wrong)(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		secrets string
		args    []string
		status  int
		says    string
	}{
		{"", []string{"readmit"}, command.Misused, "IDEM_RELAY_SECRETS is not set"},
		{"short", []string{"readmit", "-yes"}, command.Failed, "idem: a secret of Readmit has 5 characters"},
		{wrong, []string{"readmit", "-yes"}, command.Failed, "1 event of notes left set aside"},
		{right, []string{"readmit", "-dry-run"}, command.Done, "would be verified again"},
		{wrong + " " + right, []string{"readmit", "-as", "ana", "-yes"}, command.Done, "1 event of notes: accepted"},
		{right, []string{"readmit"}, command.Nothing, ""},
	} {
		t.Setenv("IDEM_RELAY_SECRETS", step.secrets)
		status, out, complaints := s.idem(step.args...)
		if status != step.status || !strings.Contains(out+complaints, step.says) {
			t.Errorf("idem %q: exit status %d, %s%s, want %d and %q", step.args, status, out, complaints, step.status, step.says)
		}
	}
	s.wantText(`select string_agg(state, ' ' order by event) from idem_events where type in ('paid', 'paghooks.set_aside')`, "pending discarded") // by key: that of the event, that of the message
	s.wantText(`select actor || ' ' || action || ' ' || result from idem_audit where actor = 'ana'`, "ana readmit 1 accepted, 0 left")
}

// Of the messages that were shown, one is given up while the question stands, and another one comes.
func TestReadmitLeavesWhatWasNotShown(t *testing.T) { // not parallel: it sets the environment
	const secret = "the-secret-of-the-relay-in-front-of-it"
	t.Setenv("IDEM_RELAY_SECRETS", secret)
	s := newShop(t)
	setAside := func(text string) {
		t.Helper()
		if err := relay.To(s.inbox, secret)(t.Context(), broker.Message{Body: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	setAside("one")
	setAside("two")
	p, _, complaints := s.program("readmit", "-as", "ana", "-without-workers")
	p.asks, p.Stdin = true, readerFunc(func(b []byte) (int, error) {
		s.exec(`delete from idem_payloads where event = (select min(event) from idem_events);
			update idem_events set state = 'discarded' where event = (select min(event) from idem_events)`)
		setAside("three")
		return copy(b, "y\n"), nil
	})
	status := p.run(t.Context())
	for _, says := range []string{
		"idem: 1 of the 2 events of notes left alone:", "idem: 1 event of notes came since, left alone", "idem: 1 event of notes left set aside",
	} {
		if status != command.Failed || !strings.Contains(complaints.String(), says) {
			t.Errorf("exit status %d, %s, want it to say %q", status, complaints, says)
		}
	}
	s.wantText(`select result from idem_audit`, "0 accepted, 1 left")
}
