package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestEveryModeLosesAndDoublesNothing(t *testing.T) {
	pool := idemtest.Pool(t)
	var out strings.Builder
	c := config{at: 8, conns: 4, turns: 2, turn: 50 * time.Millisecond, postgres: pool.Config().ConnString()}
	if err := c.run(t.Context(), &out, t.Output()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, says := range append([]string{"events/s", "inbox to river end to end: "}, allModes...) {
		if !strings.Contains(out.String(), says) {
			t.Errorf("%q is not in the report:\n%s", says, out.String())
		}
	}
	if left := schemas(t, pool); left != 0 {
		t.Errorf("%d schemas are left behind", left)
	}
}

func schemas(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `select count(*) from pg_namespace where starts_with(nspname, 'paghooks_bench_')`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestALostOrDoubledEffectIsInTheLedger(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found []int64 // the numbers of the events that have an effect
		wrong bool
	}{
		"all is right":         {[]int64{1, 2}, false},
		"an effect is lost":    {[]int64{2}, true},
		"an effect is doubled": {[]int64{1, 2, 2}, true},
		"one for another":      {[]int64{2, 2}, true},
		"of no event":          {[]int64{1, 2, 3}, true},
	} {
		one := &contender{sender: new(sender), finish: func(context.Context) error { return nil }}
		for _, n := range []int64{1, 2} {
			one.payments.Add(1)
			one.cents.Add(cents(n))
		}
		var sum int64
		for _, n := range c.found {
			sum += cents(n)
		}
		one.effects = fmt.Sprintf("select %d::bigint, %d::bigint", len(c.found), sum)
		var err error
		if one.admin, err = pgx.Connect(t.Context(), idemtest.URL(t)); err != nil {
			t.Fatal(err)
		}
		if err := one.compare(t.Context()); (err != nil) != c.wrong {
			t.Errorf("%s: %v", name, err)
		}
		_ = one.admin.Close(t.Context())
	}
}

// receiver is a server that answers with what status says for an event's delivery of that number.
func receiver(t *testing.T, status func(id string, delivery int) int) (s *sender, deliveries map[string]int) {
	t.Helper()
	deliveries = map[string]int{}
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id := asaas.Identify(body).ID
		mu.Lock()
		deliveries[id]++
		n := deliveries[id]
		mu.Unlock()
		w.WriteHeader(status(id, n))
	}))
	t.Cleanup(server.Close)
	return &sender{url: server.URL, client: server.Client(), events: newEvents("run")}, deliveries
}

func TestWhatIsNotAnswered200IsDeliveredAgain(t *testing.T) {
	t.Parallel()
	s, deliveries := receiver(t, func(_ string, delivery int) int {
		return []int{http.StatusServiceUnavailable, http.StatusAccepted, http.StatusOK}[min(delivery, 3)-1]
	})
	l := &s.account
	for until := time.Nanosecond; l.acknowledged == 0; until = time.Second { // a scheduler that was late
		s.load(t.Context(), 4, time.Now().Add(until))
	}
	if l.not200 != 2*l.acknowledged || int64(len(deliveries)) != s.last.Load() || s.lost.Load() != 0 {
		t.Errorf("%d events were acknowledged, %d deliveries were not; %v", l.acknowledged, l.not200, deliveries)
	}
}

func TestDuplicatesAreOfAcknowledgedEvents(t *testing.T) {
	t.Parallel()
	s, deliveries := receiver(t, func(string, int) int { return http.StatusOK })
	s.load(t.Context(), 4, time.Now().Add(time.Second))
	l, all := &s.account, 0
	for _, n := range deliveries {
		all += n
	}
	if int64(len(deliveries)) != l.acknowledged || all != len(l.answers) || all <= len(deliveries) {
		t.Errorf("%d events in %d deliveries, of which %d were acknowledged in %d answers", len(deliveries), all, l.acknowledged, len(l.answers))
	}
}

func TestARunThatIsInterruptedLeavesNothingBehind(t *testing.T) {
	pool := idemtest.Pool(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := config{modes: []string{"inbox", "river"}, at: 4, conns: 4, turns: 50_000, turn: 20 * time.Millisecond, postgres: pool.Config().ConnString()}
	var out strings.Builder
	if err := c.run(ctx, &out, canceller(cancel)); err != nil || !strings.Contains(out.String(), "inbox to river") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if left := schemas(t, pool); left != 0 {
		t.Errorf("%d schemas are left behind", left)
	}
}

// canceller ends the run when it has made progress.
type canceller context.CancelFunc

func (c canceller) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), "turn 2 of") {
		c()
	}
	return len(p), nil
}

func TestModesThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"", "frst", "first,first"} {
		if err := new(config).setModes(list); err == nil {
			t.Errorf("-mode %q is taken", list)
		}
	}
	c := config{}
	if err := c.setModes("first,hand"); err != nil || !slices.Equal(c.modes, []string{"first", "hand"}) {
		t.Errorf("%v, %v", c.modes, err)
	}
}
