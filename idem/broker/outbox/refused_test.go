package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/idem/internal/outage"
	"github.com/paghooks/paghooks/internal/testkit"
)

// selective is a broker that refuses messages of some types.
type selective struct {
	mu        sync.Mutex
	refuses   func(eventType string) error
	tried     map[string]int // messages of each type
	published []broker.Message
}

func (p *selective) Publish(_ context.Context, m broker.Message) error {
	p.mu.Lock()
	p.tried[m.Type]++
	refuses := p.refuses
	p.mu.Unlock()
	err := refuses(m.Type) // which may hang
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		return err
	}
	p.published = append(p.published, m)
	return nil
}

func (p *selective) set(refuses func(string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = refuses
}

// tries returns how often a message of a type was tried.
func (p *selective) tries(eventType string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tried[eventType]
}

// byKey returns the bodies that were published, of each Key.
func (p *selective) byKey() map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	bodies := map[string][]string{}
	for _, m := range p.published {
		bodies[m.Key] = append(bodies[m.Key], string(m.Body))
	}
	return bodies
}

// emitAs emits n messages of a type, two for each Key, in one transaction.
func emitAs(s *testkit.Shop, o *outbox.Outbox, eventType string, n int) map[string][]string {
	s.Helper()
	bodies := map[string][]string{}
	err := pgx.BeginFunc(s.Context(), s.Pool, func(tx pgx.Tx) error {
		for k := range n {
			m := broker.Message{Type: eventType, Key: fmt.Sprint(eventType, k/2), Body: fmt.Append(nil, k)}
			bodies[m.Key] = append(bodies[m.Key], string(m.Body))
			if err := o.EmitTx(s.Context(), tx, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return bodies
}

// One topic is missing, full or forbidden: only its own messages wait, and health says which.
func TestATypeThatTheBrokerRefusesHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	over := make(chan bool)
	t.Cleanup(func() { close(over) })
	type row struct {
		why    string
		refuse func() error
	}
	for _, test := range testkit.First(2, []row{
		{"it says nothing of use", func() error { return errors.New("403 ACCESS_REFUSED") }},
		{"the publisher hangs, whatever its context says", func() error { <-over; return nil }},
		{"there is no queue for it", func() error { return fmt.Errorf("broker: %w", broker.ErrNoQueue) }},
		{"each is too large", func() error { return fmt.Errorf("broker: %w", broker.ErrTooLarge) }},
		{"the publisher panics", func() error { panic("no topic") }},
	}) {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			const invoices, orders = 2000, 100
			s, w := testkit.OpenShop(t, testkit.PoolOf(t, 12)), &selective{tried: map[string]int{}}
			w.set(func(eventType string) error {
				if eventType == "invoice.made" {
					return test.refuse()
				}
				return nil
			})
			o := outbox.New(s.Pool, "shop", w)
			o.Logger, o.Workers, o.Poll, o.Timeout = s.Logger(), 4, 100*time.Millisecond, 3*time.Second
			want := emitAs(s, o, "invoice.made", invoices)
			maps.Copy(want, emitAs(s, o, "order.paid", orders))
			start := time.Now()
			s.Start(o.Inbox)
			s.Until(`select count(*) = $1 from idem_events where state = 'done'`, orders)
			tries := w.tries("invoice.made")
			claims := testkit.QueryOne[int](s, s.Pool, `select coalesce(sum(starts), 0) from idem_events where type = 'invoice.made'`)
			pauses := int(time.Since(start) / (2 * time.Second)) // after each of which package outage has one tried: a busy machine takes its time
			// The third that fails makes an outage, while each other worker tries one; and it shows that orders go through.
			if most := outage.Several - 1 + o.Workers + 2 + pauses; tries > most {
				t.Errorf("%d messages were refused until %d orders were published, want %d at most", tries, orders, most)
			}
			if most := invoices / 4 * max(1, pauses); claims > most {
				t.Errorf("%d claims of refused messages, of which each took as long as that of an order, want %d at most", claims, most)
			}
			untilRed(s, o, "broker", "it takes no message of some types, and several have failed: invoice.made for ")
			if n := testkit.QueryOne[int](s, s.Pool, `select count(*) from idem_events where state <> 'pending' and type = 'invoice.made'`); n != 0 {
				t.Errorf("%d messages do not wait", n)
			}

			w.set(func(string) error { return nil })
			s.Until(`with due as (update idem_payloads set due_at = now() where due_at > now() + interval '1 second')
				select count(*) = $1 from idem_events where state = 'done'`, invoices+orders)
			if diff := cmp.Diff(want, w.byKey()); diff != "" {
				t.Error("published of each Key (-want +got):\n" + diff)
			}
			s.WantHealth("all are taken", s.NewHealth(o), "", "")
		})
	}
}

// untilRed waits until a check of an outbox's health fails, and makes its messages due meanwhile.
func untilRed(s *testkit.Shop, o *outbox.Outbox, name, says string) {
	s.Helper()
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); testkit.Pause() {
		s.Exec(`update idem_payloads set due_at = now() where due_at > now() + interval '1 second'`)
		for _, c := range s.NewHealth(o).Report().Checks {
			if c.Name == name && !c.Healthy && strings.HasPrefix(c.Says, says) {
				return
			}
		}
	}
	s.Fatalf("the check %s never fails\n%s", name, s.Logged())
}
