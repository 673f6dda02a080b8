//go:build long

package idemtest_test

import (
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestExactlyOnceInboxFindsTheSameMistakes(t *testing.T) {
	t.Parallel()
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if says := rehearse(t, idemtest.ExactlyOnceInbox, m.handler, m.effects, "evt_1"); !strings.Contains(says, m.inbox) {
				t.Errorf("it says:\n%s\nwant %s", says, m.inbox)
			}
		})
	}
}
