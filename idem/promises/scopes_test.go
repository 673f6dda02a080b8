package promises_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// A deployment gives the only account a scope.
func TestHealthIsRedAtTheFirstStartAfterAScopeWasIntroducedUntilTheEventsAreMoved(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	effects := 0
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(2990))
	charge.Created()
	body := charge.Received()
	deliver := func(events *asaas.Dispatcher) *idem.Inbox {
		t.Helper()
		events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { effects++; return nil })
		r := newFirst(pool, events)
		r.Logger = nil
		w := httptest.NewRecorder()
		r.ServeHTTP(w, asaastest.Request("/webhooks/asaas", "a token that only Asaas knows", body))
		if w.Code != http.StatusOK {
			t.Fatalf("a delivery is answered %d", w.Code)
		}
		return r
	}
	scopes := func(r *idem.Inbox) (c check.Result) {
		t.Helper()
		h := health.New(r)
		h.Logger = nil
		report := h.Report()
		for _, c = range report.Checks {
			if c.Name == "scopes" {
				if report.Healthy != c.Healthy {
					t.Errorf("the report is %+v", report)
				}
				return c
			}
		}
		return check.Result{Healthy: true}
	}
	before := deliver(asaas.NewDispatcher("a token that only Asaas knows"))
	if c := scopes(before); !c.Healthy || c.Name != "" {
		t.Errorf("before: %+v", c)
	}
	after := newFirst(pool, accountsOf("shop", "a token that only Asaas knows"))
	after.Logger = nil
	if c := scopes(after); c.Healthy || !strings.Contains(c.Command, "idem help rescope") {
		t.Errorf("before its first delivery: %+v", c)
	}
	if n, err := acted(t.Context(), "")(operator.New(after, "ana").PlanRescope(t.Context(), "", operator.Account{Source: "asaas", Scope: "shop"})); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if c := scopes(after); !c.Healthy || c.Name == "" {
		t.Errorf("after the move: %+v", c)
	}
	deliver(accountsOf("shop", "a token that only Asaas knows"))
	if effects != 1 {
		t.Errorf("%d effects, want 1", effects)
	}
}

// A start is refused where nothing is lost by that: nobody makes the events of before any more,
// and none is under the new name.
func TestServeRefusesToStartWhereAScopeWasIntroducedAndNobodyMakesEventsWithoutOne(t *testing.T) {
	t.Parallel()
	const old = `insert into idem_events (event, type, key, state, received_at) values ('asaas//e1', '', '', 'done', now() - interval '25 hours');`
	worker := func(source string) string {
		return `insert into idem_workers (id, source, host, pid, started_at, seen_at) values (1, '` + source + `', 'till', 42, now(), now());`
	}
	for why, c := range map[string]struct {
		rows           string
		refused, warns bool
		events         *asaas.Dispatcher
	}{
		"all are of before":                          {rows: old, refused: true},
		"a worker of another source lives":           {rows: old + worker("zeltapay"), refused: true},
		"the program of before may be running":       {rows: old + worker("asaas"), warns: true},
		"an event without a scope came within a day": {rows: strings.Replace(old, "25", "23", 1), warns: true},
		"it has run before: a stop would cost more":  {rows: old + `insert into idem_events (event, type, key, state) values ('asaas/shop/e1', '', '', 'done')`, warns: true},
		"all were moved":                             {rows: `insert into idem_events (event, type, key, state) values ('asaas/shop/e1', '', '', 'done')`},
		"it is the first program":                    {},
		"a body that was set aside is of no account": {rows: strings.Replace(old, "'', '', 'done'", "'"+relay.SetAsideType+"', '', 'unhandled'", 1)},
		"the account keeps having none":              {rows: old, events: asaas.NewDispatcher("a token that only Asaas knows")},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			if c.rows != "" {
				s.Exec(c.rows)
			}
			if c.events == nil {
				c.events = accountsOf("shop", "a token that only Asaas knows")
			}
			inbox := idem.NewInbox(s.Pool, c.events)
			inbox.Logger = s.Logger()
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			server := &http.Server{Addr: "127.0.0.1:0", BaseContext: func(net.Listener) context.Context { stop(); return ctx }} // it serves
			go func() { served <- idem.Serve(ctx, server, inbox) }()
			err := <-served
			if c.refused != (err != nil) || c.refused && !strings.Contains(err.Error(), `idem rescope -source asaas -account ""`) {
				t.Errorf("Serve = %v, want refused %t", err, c.refused)
			}
			if said := s.Logged(); strings.Contains(said, "idem rescope -source asaas") != c.warns {
				t.Errorf("the log says, want a warning %t:\n%s", c.warns, said)
			}
		})
	}
}

func TestServeSaysAtItsStartThatASourceHasEventsWithAndWithoutAScope(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.Exec(`insert into idem_events (event, type, key, state) values ('notes//e1', '', '', 'done'), ('notes/shop/e1', '', '', 'done')`)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	_, ended := s.Served(ctx, s.Inbox)
	for !strings.Contains(s.Logged(), mixedScopes) && ctx.Err() == nil {
		pause()
	}
	if ctx.Err() != nil {
		t.Error("it does not say so:\n" + s.Logged())
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestOnlyAMixOfScopesOfOneSourceIsNoticed(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		events string
		want   bool
	}{
		"a scope was introduced":                        {`('notes//e1'), ('notes/shop/e1')`, true},
		"a scope that comes before those of none":       {`('notes//e1'), ('notes/-/e1')`, true},
		"all have one":                                  {`('notes/shop/e1'), ('notes/-/e1')`, false},
		"none has one, whatever the ids have":           {`('notes//e1'), ('notes//shop/e1')`, false},
		"a body that was set aside is of no account":    {`('notes//aside'), ('notes/shop/e1')`, false},
		"the others are of sources with a similar name": {`('notes//e1'), ('notes2/shop/e1'), ('notes-/shop/e1'), ('note/shop/e1')`, false},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.Exec(`insert into idem_events (event, type, key, state) select event, case event when 'notes//aside' then '` + relay.SetAsideType + `' else '' end, '', 'done' from (values ` + c.events + `) e (event)`)
			if mixed, err := store.HasMixedScopes(t.Context(), s.Pool, "notes"); mixed != c.want || err != nil {
				t.Errorf("HasMixedScopes = %t, %v, want %t", mixed, err, c.want)
			}
		})
	}
}

// accountsOf returns a dispatcher whose accounts all have a scope.
func accountsOf(scope, token string) *asaas.Dispatcher {
	events := asaas.NewDispatcher("") // as of a variable that is not set
	events.Accounts = func(*http.Request) ([]idem.Credentials, error) {
		return []idem.Credentials{{Scope: scope, Secrets: []string{token}}}, nil
	}
	return events
}

const mixedScopes = "webhook events are stored with and without a scope"
