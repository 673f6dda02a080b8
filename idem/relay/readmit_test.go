package relay_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/relay"
)

// The consumers have had a wrong secret.
func TestMessagesOfAWrongSecretComeBackWithTheRightOne(t *testing.T) {
	t.Parallel()
	const wrong = "another secret, of thirty-two characters"
	for _, mode := range []string{"an inbox", "a processor"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := &fakeBroker{}
			s, _ := newRelayApp(t, b)
			var to idem.Receiver = s.inbox
			if mode == "a processor" {
				to = s.processor
			}
			for _, id := range []string{"e1", "e2", "e3"} {
				s.wantAnswer(paid(id), http.StatusOK)
			}
			for _, m := range append(b.published, broker.Message{Body: []byte("a stranger's")}) {
				if err := relay.To(to, wrong)(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			if err := relay.To(to, secret)(t.Context(), b.published[1]); err != nil { // came again meanwhile
				t.Fatal(err)
			}
			if r, err := relay.Readmit(t.Context(), to, idem.Filter{}, wrong); r.Accepted != 0 || r.Left != 4 || r.Why == nil || !strings.Contains(r.Why.Error(), "secret") || err != nil {
				t.Errorf("with the wrong secret: %+v, %v", r, err)
			}
			for _, want := range []int{3, 0} {
				if r, err := relay.Readmit(t.Context(), to, idem.Filter{}, wrong, secret); r.Accepted != want || r.Left != 1 || r.Why == nil || err != nil {
					t.Errorf("with the right one: %+v, %v, want %d accepted", r, err, want)
				}
			}
			if mode == "an inbox" {
				s.drain(3)
			}
			s.wantEffects(3)
			s.wantStates(map[idem.State]int{idem.StateDone: 3, idem.StateDiscarded: 3, idem.StateParked: 1})
		})
	}
}

func TestMessageWhoseHandlerFailsStaysSetAside(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{}
	s, _ := newRelayApp(t, b)
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.exec(`alter table effects rename to none`)
	if err := relay.To(s.processor, "another secret, of thirty-two characters")(t.Context(), b.published[0]); err != nil {
		t.Fatal(err)
	}
	if r, err := relay.Readmit(t.Context(), s.processor, idem.Filter{}, secret); r.Accepted != 0 || r.Left != 1 || err == nil || !strings.Contains(err.Error(), "effects") {
		t.Errorf("Readmit = %+v, %v", r, err)
	}
	s.exec(`alter table none rename to effects`)
	if r, err := relay.Readmit(t.Context(), s.processor, idem.Filter{}, secret); r.Accepted != 1 || r.Left != 0 || err != nil {
		t.Errorf("Readmit = %+v, %v", r, err)
	}
	s.wantEffects(1)
}

// The messages that a person was shown, and no others.
func TestReadmitTakesOnlyTheMessagesOfItsFilter(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{}
	s, _ := newRelayApp(t, b)
	take := relay.To(s.inbox, "another secret, of thirty-two characters")
	for _, id := range []string{"e1", "e2", "e3"} {
		s.wantAnswer(paid(id), http.StatusOK)
	}
	for _, m := range b.published[:2] {
		if err := take(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	seen, err := s.inbox.Choose(t.Context(), idem.Filter{Types: []string{idem.SetAsideType}})
	if err != nil || len(seen.Events) != 2 {
		t.Fatalf("Choose = %v, %v, want two", seen.Events, err)
	}
	if err := take(t.Context(), b.published[2]); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why    string
		filter idem.Filter
		want   int
	}{
		{"nothing was chosen", idem.Filter{Events: []string{}}, 0},
		{"one of those that were shown, whatever type and state it names", idem.Filter{Events: seen.Events[:1], Types: []string{"paid"}, States: []idem.State{idem.StateParked}}, 1},
		{"all that were shown, of which one is left", seen, 1},
		{"the zero filter", idem.Filter{}, 1},
	} {
		if r, err := relay.Readmit(t.Context(), s.inbox, c.filter, secret); r.Accepted != c.want || r.Left != 0 || err != nil {
			t.Errorf("%s: %+v, %v, want %d accepted", c.why, r, err, c.want)
		}
	}
}

func TestReadmitWithoutAUsableSecretIsAnErrorAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	if err := relay.To(s.inbox, secret)(t.Context(), broker.Message{Body: []byte("a stranger's")}); err != nil {
		t.Fatal(err)
	}
	for says, secrets := range map[string][]string{
		"relay: Readmit has no secret":                              nil,
		"relay: a secret of Readmit has 5 characters, and needs 32": {secret, "short"},
	} {
		if r, err := relay.Readmit(t.Context(), s.inbox, idem.Filter{}, secrets...); r != (relay.Readmitted{}) || err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("Readmit = %+v, %v, want %q", r, err, says)
		}
	}
	s.wantStates(map[idem.State]int{idem.StateParked: 1})
}
