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
	s := newApp(t)
	second := s.NewFirst()
	second.AnswerWithin = 200 * time.Millisecond
	entered, release := make(chan struct{}), make(chan struct{})
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		close(entered)
		<-release
		return pay(ctx, tx, n)
	})
	var deliveries sync.WaitGroup
	deliveries.Go(func() { s.WantAnswer(paid("e1"), http.StatusOK) })
	<-entered
	outcome, err := second.Accept(t.Context(), identify([]byte(paid("e1"))))
	if outcome != idem.Retrying || err == nil {
		t.Errorf("the duplicate's outcome is %s, %v, want retrying", outcome, err)
	}
	close(release)
	deliveries.Wait()
	s.WantEffects(1)
}
