package idem_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// mailroom is a shop whose deliveries go to an inbox. Its workers run once they
// are started.
type mailroom struct {
	*shop
	inbox  *idem.Inbox
	worked chan idem.Observation // what workers have settled
}

func newMailroom(t *testing.T) *mailroom {
	t.Helper()
	return openMailroom(t, poolOf(t, 4)) // so that there is one statement that stores at a time
}

func openMailroom(t *testing.T, pool *pool) *mailroom {
	t.Helper()
	m := &mailroom{shop: openShop(t, pool), worked: make(chan idem.Observation, 10_000)}
	m.inbox = m.newInbox(pool)
	server := httptest.NewServer(m.inbox)
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

// newInbox is another inbox with the same handlers: what another process would
// be. It tries again at once, and looks for events often.
func (m *mailroom) newInbox(pool *pool) *idem.Inbox {
	i := idem.NewInbox(pool, m.notes)
	i.Backoff = func(int) time.Duration { return 0 }
	i.Poll = 10 * time.Millisecond
	i.Logger = m.processor.Logger
	i.Observe = func(ctx context.Context, o idem.Observation) {
		m.processor.Observe(ctx, o)
		switch o.Outcome {
		case idem.Pending, idem.Duplicate, idem.Ignored, idem.Refused, idem.Rejected:
		default:
			m.worked <- o
		}
	}
	return i
}

// start runs workers until stop, or until the test ends.
func (m *mailroom) start(i *idem.Inbox) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			m.Errorf("Run = %v\n%s", err, m.logged())
		}
	})
	m.Cleanup(stop)
	return stop
}

// patience is a last resort: what is awaited comes much earlier, or never.
const patience = time.Minute

// next waits until a worker has settled an event.
func (m *mailroom) next() idem.Observation {
	m.Helper()
	select {
	case o := <-m.worked:
		return o
	case <-time.After(patience):
		m.Fatal("no worker has settled an event:\n" + m.logged())
		panic("unreachable")
	}
}

// wantWorked waits for what workers settle next.
func (m *mailroom) wantWorked(want ...idem.Outcome) {
	m.Helper()
	for n, outcome := range want {
		if o := m.next(); o.Outcome != outcome {
			m.Fatalf("outcome %d is %s of %s (%v), want %s", n+1, o.Outcome, o.Event.ID, o.Err, outcome)
		}
	}
}

// store has the inbox store events, one after the other.
func (m *mailroom) store(events ...idem.Event) {
	m.Helper()
	for _, e := range events {
		if o, err := m.inbox.Accept(m.Context(), e); o != idem.Pending || err != nil {
			m.Fatalf("Accept(%s) = %s, %v, want queued", e.ID, o, err)
		}
	}
}

// letter is a paid event of an order, at a second of the provider's clock; at 0
// the provider does not say when.
func letter(id, order string, at int) idem.Event {
	e := identify(fmt.Appendf(nil, `{"id":%q,"type":"paid","order":%q}`, id, order))
	if at > 0 {
		e.OccurredAt = time.Unix(1_700_000_000+int64(at), 0)
	}
	return e
}

// wantRow checks columns of an event's row, as SQL writes them.
func (m *mailroom) wantRow(id, columns, want string) {
	m.Helper()
	got := queryOne[string](m.shop, `
		select (`+columns+`)::text from idem_events left join (select event, until as claimed from idem_claims) c using (event)
		where event like '%/' || $1`, id)
	if diff := cmp.Diff(want, got); diff != "" {
		m.Errorf("%s of %s (-want +got):\n%s", columns, id, diff)
	}
}

// until repeats a query until it says true.
func (m *mailroom) until(sql string, args ...any) {
	m.Helper()
	for deadline := time.Now().Add(patience); !queryOne[bool](m.shop, sql, args...); runtime.Gosched() {
		if time.Now().After(deadline) {
			m.Fatalf("it never came true: %s\n%s", sql, m.logged())
		}
	}
}

// hold keeps statements that store events waiting until release.
func (m *mailroom) hold() (release func()) {
	m.Helper()
	conn, err := pgx.ConnectConfig(m.Context(), m.pool.Config().ConnConfig)
	if err != nil {
		m.Fatal(err)
	}
	if _, err := conn.Exec(m.Context(), `begin; lock table idem_payloads in share mode`); err != nil {
		m.Fatal(err)
	}
	release = sync.OnceFunc(func() { _ = conn.Close(context.Background()) })
	m.Cleanup(release)
	return release
}

// untilHeld waits until a statement waits for hold.
func (m *mailroom) untilHeld() {
	m.Helper()
	m.until(`select exists (select from pg_locks where relation = 'idem_payloads'::regclass and not granted)`)
}

var parkedInStore = regexp.MustCompile(`^goroutine \d+ \[select[^\]]*\]:\n\S*idem\.\(\*Inbox\)\.store\(`)

// untilWaiting waits until n deliveries by goroutines that this one started wait
// to be stored. Nothing but their stacks tells.
func (m *mailroom) untilWaiting(n int) {
	m.Helper()
	stacks := make([]byte, 8<<20)
	self, _, _ := strings.Cut(string(stacks[:runtime.Stack(stacks, false)]), " [")
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		waiting := 0
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if parkedInStore.MatchString(stack) && strings.Contains(stack, " in "+self+"\n") {
				waiting++
			}
		}
		if waiting == n {
			return
		}
		if time.Now().After(deadline) {
			m.Fatalf("%d deliveries wait to be stored, want %d", waiting, n)
		}
	}
}
