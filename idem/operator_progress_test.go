package idem_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
	"github.com/paghooks/paghooks/idem/operator"
)

func TestTrailTellsHowFarAReplayHasCome(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	for _, id := range []string{"e1", "e2", "e3"} {
		s.wantAnswer(paid(id), 200) // unhandled
	}
	var meanwhile []operator.Action
	s.deploy(func(n *notes) {
		idem.Handle(&n.Routes, "paid", func(ctx context.Context, _ pgx.Tx, n *note) (err error) {
			if n.ID == "e2" {
				meanwhile, err = operator.New(s.processor, "").Actions(ctx, 0, 10)
			}
			return err
		})
	})
	if _, err := operator.New(s.processor, "ana").Replay(t.Context(), idem.Filter{}, "handler deployed"); err != nil {
		t.Fatal(err)
	}
	ended, err := operator.New(s.processor, "").Actions(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	want := operator.Action{
		Actor: "ana", Action: "replay", Source: "notes", Filter: "states unhandled parked", Reason: "handler deployed",
		Events: 3, Result: "1 of 3: 1 done, 0 failed, 0 without a handler", Alive: true,
	}
	ignore := cmpopts.IgnoreFields(operator.Action{}, "ID", "At")
	if diff := cmp.Diff([]operator.Action{want}, meanwhile, ignore); diff != "" {
		t.Error("during the second event the trail has (-want +got):\n" + diff)
	}
	want.Result, want.Alive = "3 done, 0 failed, 0 without a handler", false
	if diff := cmp.Diff([]operator.Action{want}, ended, ignore, cmpopts.IgnoreFields(operator.Action{}, "EndedAt")); diff != "" || ended[0].EndedAt.IsZero() {
		t.Errorf("after it, ended %s, the trail has (-want +got):\n%s", ended[0].EndedAt, diff)
	}
}

// A note of how far a replay has come is not worth waiting for.
func TestReplayGoesOnAfterTheNetworkForgetsItsNote(t *testing.T) {
	t.Parallel()
	proxy := new(pgproxy.Proxy)
	s := openApp(t, openPool(t, idemtest.URL(t), proxy.Through))
	s.deploy(func(*notes) {})
	for _, id := range []string{"e1", "e2"} {
		s.wantAnswer(paid(id), 200) // unhandled
	}
	s.deploy(func(n *notes) { idem.Handle(&n.Routes, "paid", pay) })
	forget := sync.OnceFunc(proxy.Forget)
	s.processor.Observe = func(context.Context, idem.Observation) { forget() }
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if r, err := operator.New(s.processor, "ana").Replay(ctx, idem.Filter{}, ""); counted(r) != counted(idem.Replayed{Done: 2}) || err != nil {
		t.Error(r, err)
	}
	s.wantEffects(2)
}
