//go:build long

package console_test

import (
	"testing"
)

// The form of the largest list arrives, and a larger one is not shown.
func TestActionIsAboutAsManyEventsAsAFormCarries(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	exec := func(sql string) {
		if _, err := a.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into idem_events (event, type, key, state, attempts) select 'letters//' || n, 'paid', '', 'parked', 1 from generate_series(1, 50000) n;
		insert into idem_payloads (event, source, received_at, body) select event, 'letters', received_at, '' from idem_events`)
	form := a.get("confirm?source=letters&state=parked&action=acknowledge").form("act")
	exec(`insert into idem_events (event, type, key, state, attempts) values ('letters//one', 'paid', '', 'parked', 1);
		insert into idem_payloads (event, source, received_at, body) values ('letters//one', 'letters', now(), '')`)
	a.get("confirm?source=letters&state=parked&action=acknowledge").want(400, "chooses 50,001 events, and an action of this page is about 50,000 at most")
	a.post("act", form).want(303)
	var shown, others int
	err := a.pool.QueryRow(t.Context(), `select count(*) filter (where event <> 'letters//one'), count(*) filter (where event = 'letters//one')
		from idem_payloads where acknowledged_at is not null`).Scan(&shown, &others)
	if shown != 50_000 || others != 0 || err != nil {
		t.Errorf("%d of the events that were shown and %d others are acknowledged, %v, want 50,000 and 0", shown, others, err)
	}
}
