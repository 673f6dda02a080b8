//go:build long

package promises_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

func TestConcurrentDuplicateThatCannotWaitLongerIsToldToComeAgain(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"same process", "another process", "another process, that has an hour"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			second := s.first
			switch where {
			case "another process":
				second = s.newFirst()
				second.Timeout = 200 * time.Millisecond
			case "another process, that has an hour": // a connection that waits is given up before that
				s.first.Timeout = time.Hour
				second = s.newFirst()
				second.Timeout = time.Hour
			}
			entered, release := make(chan struct{}), make(chan struct{})
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				close(entered)
				<-release
				return pay(ctx, tx, n)
			})
			var deliveries sync.WaitGroup
			deliveries.Go(func() { s.wantAnswer(paid("e1"), http.StatusOK) })
			<-entered
			if where == "same process" {
				s.first.Timeout = 200 * time.Millisecond // of deliveries from now on
			}
			outcome, err := second.Accept(t.Context(), identify([]byte(paid("e1"))))
			if outcome != idem.Retrying || err == nil {
				t.Errorf("the duplicate's outcome is %s, %v, want retrying", outcome, err)
			}
			close(release)
			deliveries.Wait()
			s.wantEffects(1)
			if n := queryOne[int](s, `select attempts from idem_events`); n != 0 {
				t.Errorf("the duplicate was counted as a failure of the event: %d", n)
			}
		})
	}
}
