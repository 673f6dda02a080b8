package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
)

// selective is a broker that refuses messages of some types.
type selective struct {
	mu        sync.Mutex
	refuses   func(eventType string) error
	calls     int
	refused   int
	published []broker.Message
}

func (p *selective) Publish(_ context.Context, m broker.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.refuses != nil {
		if err := p.refuses(m.Type); err != nil {
			p.refused++
			return err
		}
	}
	p.published = append(p.published, m)
	return nil
}

func (p *selective) set(refuses func(string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = refuses
}

func (p *selective) count() (calls, refused, published int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls, p.refused, len(p.published)
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
func (s *app) emitAs(o *outbox.Outbox, eventType string, n int) map[string][]string {
	s.Helper()
	bodies := map[string][]string{}
	err := pgx.BeginFunc(s.Context(), s.pool, func(tx pgx.Tx) error {
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

func refuse(eventType string, err error) func(string) error {
	return func(t string) error {
		if t == eventType {
			return err
		}
		return nil
	}
}

// One topic is missing, full or forbidden: only its own messages wait, and health says which.
func TestATypeThatTheBrokerRefusesHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for why, err := range map[string]error{
		"it says nothing of use":       errors.New("403 ACCESS_REFUSED"),
		"there is no queue for it":     fmt.Errorf("broker: %w", broker.ErrNoQueue),
		"every one of it is too large": fmt.Errorf("broker: %w", broker.ErrTooLarge),
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			const invoices, orders = 2000, 100
			s, w := openApp(t, poolOf(t, 12)), &selective{refuses: refuse("invoice.made", err)}
			o := outbox.New(s.pool, "shop", w)
			o.Logger, o.Observe, o.Workers = s.logger(), nil, 4
			o.Poll = 100 * time.Millisecond
			want := s.emitAs(o, "invoice.made", invoices)
			for key, bodies := range s.emitAs(o, "order.paid", orders) {
				want[key] = bodies
			}
			s.start(o.Inbox)
			s.until(`select count(*) = $1 from idem_events where state = 'done'`, orders)
			if calls, refused, _ := w.count(); refused > 20 {
				t.Errorf("%d calls for %d orders, of which %d were refused: want a few", calls, orders, refused)
			}
			s.untilRed(o, "broker", "it has taken no message of these types, and several have failed: invoice.made for ")
			if n := queryOne[int](s, `select count(*) from idem_events where state <> 'pending' and type = 'invoice.made'`); n != 0 {
				t.Errorf("%d messages do not wait", n)
			}

			w.set(nil)
			s.until(`with due as (update idem_payloads set due_at = now() where due_at > now() + interval '1 second')
				select count(*) = $1 from idem_events where state = 'done'`, invoices+orders)
			if diff := cmp.Diff(want, w.byKey()); diff != "" {
				t.Error("published of each Key (-want +got):\n" + diff)
			}
			s.wantHealth("all are taken", s.newHealth(o), "", "")
		})
	}
}

// untilRed waits until a check of an outbox's health fails, and makes its messages due meanwhile.
func (s *app) untilRed(o *outbox.Outbox, name, says string) {
	s.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); pause() {
		s.exec(`update idem_payloads set due_at = now() where due_at > now()`)
		for _, c := range s.newHealth(o).Report().Checks {
			if c.Name == name && !c.Healthy && strings.HasPrefix(c.Says, says) {
				return
			}
		}
	}
	s.Fatalf("the check %s never fails\n%s", name, s.logged())
}
