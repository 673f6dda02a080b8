package charges_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestNoOrderOfRescopesEventsAndRunsBooksAChargeTwice(t *testing.T) {
	t.Parallel()
	town := newTown(t, 30)
	testkit.Random(t, testkit.Size(20, 80), func(r *rand.Rand) {
		h := &story{town: town, rand: r, renamed: []string{saoPaulo, slash, percent, "shop"}[r.IntN(4)]}
		h.ours, h.theirs = newSide(t, "5d2c7a10-6a1f-4e0b-9d55-0c1b7e2f9a31"), newSide(t, "9f000000-0000-4000-8000-000000000001")
		h.exec(`truncate asaas_charges, asaas_charges_since, asaas_charges_runs, ledger; delete from idem_events; delete from idem_payloads where source <> ''; delete from idem_archive`)
		h.tell()
		if t.Failed() {
			t.Fatalf("the story: %q", h.said)
		}
	})
}

// story is a random history of two accounts: ours begins without a scope and gets one at some time, another one joins
// late; events come under the old, the new and wrong names, and Daily runs with wrong settings. What is in the ledger
// is always what the table says, and what Asaas says in the end.
type story struct {
	*town
	rand         *rand.Rand
	said         []string // for a failure
	ours, theirs side
	renamed      string // the scope that ours gets
	moved        bool
}

// side is an account at Asaas.
type side struct {
	account string
	fake    *asaastest.Fake
	client  *asaas.Client
	charges []*asaastest.Charge
	foreign []string // ids of charges that another program has booked
	bodies  [][]byte
}

func newSide(t *testing.T, account string) side {
	fake, client := newAccount(t)
	return side{account: account, fake: fake, client: client}
}

const joined = "joined later/x"

func (h *story) tell() {
	h.act("ours is paid", func() { h.happen(&h.ours); h.happen(&h.ours) })
	for _, body := range h.ours.bodies[:1] {
		h.take("", body)
	}
	for range 25 {
		switch h.rand.IntN(12) {
		case 0, 1:
			h.act("ours is paid", func() { h.happen(&h.ours) })
		case 2:
			h.act("theirs is paid", func() { h.happen(&h.theirs) })
		case 3, 4, 5:
			h.act("an event of ours comes under its name", func() { h.take(h.name(), h.any(h.ours.bodies)) })
		case 6:
			scope := []string{"", h.renamed, "nobody"}[h.rand.IntN(3)]
			h.act("an event of ours comes under "+scope, func() { h.take(scope, h.any(h.ours.bodies)) })
		case 7:
			h.act("an event of theirs comes under its name", func() { h.take(joined, h.any(h.theirs.bodies)) })
		case 8:
			h.act("an event of theirs comes under ours", func() { h.take(h.name(), h.any(h.theirs.bodies)) })
		case 9:
			h.act("rescope", h.move)
		case 10:
			h.act("the day ends", func() { h.daily(h.ours.client, h.name()) })
		case 11:
			scope := []string{"", h.renamed, h.renamed + "x", joined}[h.rand.IntN(4)]
			client := []*asaas.Client{h.ours.client, h.theirs.client}[h.rand.IntN(2)]
			h.act(fmt.Sprintf("the day ends under %q, with our key %t", scope, client == h.ours.client), func() { h.daily(client, scope) })
		}
	}
	h.end()
}

func (h *story) act(what string, do func()) {
	h.said = append(h.said, what)
	do()
	h.check(what)
}

// name is the scope of our account now.
func (h *story) name() string {
	if h.moved {
		return h.renamed
	}
	return ""
}

func (h *story) any(bodies [][]byte) []byte {
	if len(bodies) == 0 {
		return nil
	}
	return bodies[h.rand.IntN(len(bodies))]
}

// happen has a charge be made, or go on, at an account. A charge of theirs may be of before it joined here, when
// another program booked it.
func (h *story) happen(s *side) {
	var body []byte
	if n := len(s.charges); n > 0 && h.rand.IntN(3) > 0 {
		c := s.charges[h.rand.IntN(n)]
		c.Now = time.Now().In(asaas.Brasilia()) // later than each reading
		switch c.Payment.Status {
		case asaas.PaymentStatusPending:
			body = c.Confirmed()
		case asaas.PaymentStatusConfirmed:
			body = c.Received()
		default:
			return
		}
	} else {
		days := 0
		if s == &h.theirs && h.rand.IntN(2) == 0 {
			days = 20
		}
		c := madeDaysAgo(days)
		body = c.Created()
		if s.charges = append(s.charges, c); days > 0 {
			s.foreign = append(s.foreign, c.Payment.ID)
		}
	}
	body = of(s.account, body)
	s.bodies = append(s.bodies, body)
	s.fake.Emit(body)
}

// take has an event come. Its first or a later attempt is done or parked, or it waits for a parked one of its charge.
func (h *story) take(scope string, body []byte) {
	if body == nil {
		return
	}
	if state, says := h.deliver(scope, body); state != "done" && state != "parked" && state != "pending" {
		h.Errorf("an event is %s: %s", state, says)
	}
}

func (h *story) move() {
	if err := h.rescope("", h.renamed); err != nil {
		h.said = append(h.said, err.Error())
		return
	}
	h.moved = true
}

func (h *story) daily(client *asaas.Client, scope string) {
	d := &charges.Daily{Client: client, DB: h.pool, Scope: scope, Apply: book, Logger: slog.New(slog.DiscardHandler)}
	h.exec(`update asaas_charges_runs set taken = now(), began = began - interval '2 days'`)
	if _, err := d.Look(h.Context()); err != nil {
		h.said = append(h.said, err.Error())
	}
}

// check compares the ledger with the table: no charge has two rows, is booked under two names or twice, and none of
// another account's is booked under ours.
func (h *story) check(what string) {
	h.Helper()
	rows, _ := h.pool.Query(h.Context(), `select c.id || ' under ' || string_agg(c.scope, ' and ') from asaas_charges c
		group by c.id having count(*) > 1 or sum(c.paid) <> coalesce((select sum(l.paid) from ledger l where l.charge = c.id), 0) or sum(c.paid) > 100
		union all select charge || ' has no row' from ledger l where not exists (select from asaas_charges c where c.id = l.charge) group by charge having sum(paid) <> 0`)
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(wrong) > 0 {
		h.Fatalf("after %s: wrong are %q, %v: %q", what, wrong, err, h.said)
	}
	for _, c := range []struct {
		side   *side
		scopes []string
	}{{&h.ours, []string{joined}}, {&h.theirs, []string{"", h.renamed}}} {
		for _, charge := range c.side.charges {
			if got := query(h, h.pool, `select count(*) from ledger where charge = $1 and scope = any($2) and paid <> 0`, charge.Payment.ID, c.scopes); got != "0" && h.isCertain(c.side) {
				h.Fatalf("after %s: the charge %s of %s is booked under %q: %q", what, charge.Payment.ID, c.side.account, c.scopes, h.said)
			}
		}
	}
	for _, id := range h.theirs.foreign {
		if got := query(h, h.pool, `select coalesce(sum(paid), 0) from ledger where charge = $1`, id); got != "0" && got != "0.00" {
			h.Fatalf("after %s: %s of the charge %s are booked, which another program has: %q", what, got, id, h.said)
		}
	}
}

// isCertain reports whether the account of the other side's scope is known: the first event under a wrong name decides.
func (h *story) isCertain(s *side) bool {
	if s == &h.theirs {
		return true // ours has had an event first
	}
	return query(h, h.pool, `select account = $2 from asaas_charges_since where scope = $1`, joined, h.theirs.account) == "true"
}

// end has everything put right, as the errors say: what is parked is right in the end, or stays parked.
func (h *story) end() {
	h.act("rescope at the end", func() {
		if !h.moved {
			h.move()
		}
	})
	if !h.moved {
		return // the error names what stands in the way
	}
	for range 2 {
		for _, body := range slices.Concat(h.ours.bodies) {
			h.take(h.renamed, body)
		}
	}
	h.check("the end")
	nobody := query(h, h.pool, `select count(*) from asaas_charges where scope in ('nobody', $1, '')`, h.renamed+"x")
	if nobody != "0" {
		return // under a name that nobody has moved: each later event is refused
	}
	for _, c := range h.ours.charges {
		want := "0.00"
		if c.Payment.Status != asaas.PaymentStatusPending {
			want = "100.00"
		}
		if got := query(h, h.pool, `select coalesce(sum(paid), 0)::numeric(9, 2) from ledger where charge = $1`, c.Payment.ID); got != want {
			var parked string
			_ = h.pool.QueryRow(h.Context(), `select string_agg(event || ' ' || state || ' ' || coalesce(last_error, ''), E'\n') from idem_events where key = $1`, c.Payment.ID).Scan(&parked)
			h.Fatalf("in the end %s of %s are booked, want %s: %q\n%s", got, c.Payment.ID, want, h.said, parked)
		}
	}
}
