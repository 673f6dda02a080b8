package console

import (
	"fmt"
	"sync"

	"github.com/paghooks/paghooks/idem"
)

// tried holds the first failure of the last dry run of each user, in this process. A dry run stores
// nothing, and the audit trail keeps no handler's error.
type tried struct {
	mu    sync.Mutex
	first map[string]string
}

// begin forgets the one before, and returns a function that notes a failure.
func (t *tried) begin(user string) func(idem.Event, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == nil {
		t.first = map[string]string{}
	}
	delete(t.first, user)
	return func(e idem.Event, err error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.first[user] == "" {
			t.first[user] = fmt.Sprintf("%s %s: %v", e.Type, e.ID, err)
		}
	}
}

func (t *tried) of(user string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first[user]
}
