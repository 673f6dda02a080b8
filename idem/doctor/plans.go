package doctor

import (
	"context"
	"fmt"
)

// planRows is the number of rows of no source that the migrations insert into idem_payloads.
const planRows = 300

// plans finds that somebody has deleted these rows.
func (e *examination) plans(ctx context.Context) ([]Finding, error) {
	n, err := one[int](ctx, e, `select count(*)::int from idem_payloads where event >= '//' and event < '/0' and source = ''`)
	if err != nil || n >= planRows {
		return nil, err
	}
	return []Finding{{
		Severity: Warning, Problem: "the rows that keep plans good are gone: after the table was empty, deliveries and workers read all of it until it is analyzed",
		Evidence: fmt.Sprintf("idem_payloads has %d rows of no source, not %d", n, planRows),
		Remedy: fmt.Sprintf(`insert into idem_payloads (event, source, received_at, body) select '//' || n, '', now(), convert_to(repeat(' ', 400), 'UTF8') `+
			`from generate_series(1, %d) n on conflict do nothing; analyze idem_payloads`, planRows),
	}}, nil
}
