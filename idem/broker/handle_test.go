package broker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/idem/broker"
)

func TestADeliveryMayHaveAHandlerOfItsOwnWhichIsCalledAgainToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		calls := 0
		own := func(context.Context, broker.Message) error {
			if calls++; calls < 3 {
				return errors.New("not yet")
			}
			return nil
		}
		done := func(context.Context) error { f.note(&f.told, "done a"); return nil }
		f.waiting <- broker.Delivery{Message: broker.Message{ID: "a"}, Handle: own, Done: done}
		f.add("b")
		stop := f.consume(broker.Consumer{}, ok)
		time.Sleep(time.Minute)
		f.want(&f.handled, "b")
		f.want(&f.told, "done b", "done a")
		f.wantNil(stop())
		if calls != 3 {
			t.Errorf("its handler was called %d times, want 3", calls)
		}
	})
}
