package idem_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func arrive(t *testing.T, pool *pgxpool.Pool, row, key, state, ago string) {
	t.Helper()
	const insert = `insert into idem_events (event, type, key, state, received_at) values ($1, 'PAID', $2, $3, now() - $4::interval)`
	if _, err := pool.Exec(t.Context(), insert, row, key, state, ago); err != nil {
		t.Fatal(err)
	}
}

func TestArrivalsAreThoseOfTheKeysOfAnAccountSinceATime(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	p := idem.NewProcessor(pool, &notes{})
	name := p.SourceName()
	if at, err := p.LastArrival(t.Context()); !at.IsZero() || err != nil {
		t.Errorf("the last of no arrivals is %s, %v", at, err)
	}
	arrive(t, pool, name+"//done", "o1", "done", "3 hours")
	arrive(t, pool, name+"//parked", "o2", "parked", "2 hours")
	arrive(t, pool, name+"//discarded", "o1", "discarded", "1 hour")
	arrive(t, pool, name+"//old", "o1", "done", "5 hours")
	arrive(t, pool, name+"//other", "o3", "done", "2 hours")
	arrive(t, pool, name+"/shop/account", "o1", "done", "30 minutes")
	arrive(t, pool, "another//source", "o1", "done", "1 minute")
	if err := p.NoteCanary(t.Context()); err != nil { // it came through a broker just now, and is no arrival
		t.Fatal(err)
	}

	found, err := p.Arrivals(t.Context(), "", []string{"o1", "o2", "none"}, time.Now().Add(-4*time.Hour))
	var got []string
	for _, e := range found {
		got = append(got, e.ID+" "+e.Type+" "+e.Key+" "+string(e.State))
	}
	if diff := cmp.Diff([]string{"done PAID o1 done", "parked PAID o2 parked", "discarded PAID o1 discarded"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if found, err := p.Arrivals(t.Context(), "shop", []string{"o1"}, time.Time{}); len(found) != 1 || err != nil {
		t.Errorf("the account has %v, %v", found, err)
	}
	last, err := p.LastArrival(t.Context())
	if ago := time.Since(last); err != nil || ago < 25*time.Minute || ago > 50*time.Minute {
		t.Errorf("the last arrival was %s ago, %v", ago, err)
	}
}
