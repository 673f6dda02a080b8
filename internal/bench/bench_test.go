package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	s := sender{events: newEvents("run")}
	for _, n := range []int64{1, 2, 2 + charges} {
		s.booked[n%charges].payments.Add(1)
		s.booked[n%charges].cents.Add(cents(n))
	}
	right := []effects{{s.events.charge(1), 1, cents(1)}, {s.events.charge(2), 2, cents(2) + cents(2+charges)}}
	for name, c := range map[string]struct {
		found []effects
		says  string
	}{
		"all is right":                    {right, ""},
		"an effect is lost":               {right[1:], "pay_run_1: 1 payments"},
		"an effect is doubled":            {[]effects{{right[0].Charge, 2, 2 * right[0].Cents}, right[1]}, "pay_run_1: 1 payments"},
		"one for another":                 {[]effects{{right[0].Charge, 1, cents(3)}, right[1]}, "pay_run_1: 1 payments"},
		"an effect of no event":           {append([]effects{{"pay_other", 1, 1}}, right...), "pay_other is a charge of no event"},
		"an effect of an event before it": {append([]effects{{s.events.charge(3), 1, cents(3)}}, right...), "pay_run_3: 0 payments"},
	} {
		got := s.differences(c.found)
		if c.says == "" && got != nil || c.says != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.says)) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
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
	l := s.load(t.Context(), 4, time.Now().Add(time.Nanosecond))
	for l.acknowledged == 0 { // a scheduler that was late
		l = s.load(t.Context(), 4, time.Now().Add(time.Second))
	}
	if l.not200 != 2*l.acknowledged || int64(len(deliveries)) != s.last.Load() || s.lost.Load() != 0 {
		t.Errorf("%d events were acknowledged, %d deliveries were not; %v", l.acknowledged, l.not200, deliveries)
	}
}

func TestDuplicatesAreOfAcknowledgedEvents(t *testing.T) {
	t.Parallel()
	s, deliveries := receiver(t, func(string, int) int { return http.StatusOK })
	l := s.load(t.Context(), 4, time.Now().Add(time.Second))
	all := 0
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
	for _, list := range []string{"", "inlne", "inline,inline"} {
		if err := new(config).setModes(list); err == nil {
			t.Errorf("-mode %q is taken", list)
		}
	}
	c := config{}
	if err := c.setModes("inline,hand"); err != nil || !slices.Equal(c.modes, []string{"inline", "hand"}) {
		t.Errorf("%v, %v", c.modes, err)
	}
}
