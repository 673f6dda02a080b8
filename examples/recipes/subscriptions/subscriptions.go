// Package subscriptions says until when each subscription is paid, from the charge table of package charges.
// docs/subscriptions.md explains it.
package subscriptions

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
)

// Tables are the shop's subscriptions, and until when each is paid. Execute it after charges.Migrate.
const Tables = `
create table if not exists subscriptions (
    scope  text not null default '',            -- the account, if there are several
    id     text not null,                       -- sub_…, from POST /v3/subscriptions
    member text not null,                       -- your own
    cycle  interval not null default '1 month', -- paid by a renewal, from its due date
    grace  integer not null default 5,          -- days of access after that
    primary key (scope, id)
);

create or replace view paid_until as
select s.scope, s.id, s.member,
    max((c.due + s.cycle)::date) filter (where c.paid > 0)           as paid_until,
    max((c.due + s.cycle)::date) filter (where c.paid > 0) + s.grace as access_until,
    min(c.due) filter (where c.status in ('PENDING', 'OVERDUE', 'DUNNING_REQUESTED')
        and c.due < (now() at time zone 'America/Sao_Paulo')::date)  as owed_since,
    coalesce(bool_or(c.status like '%CHARGEBACK%'), false)           as disputed
from subscriptions s
left join asaas_charges c on c.scope = s.scope and c.subscription = s.id and not c.deleted
group by s.scope, s.id;`

// Subscription is a row of the view paid_until. Its days are absent if nothing is paid, or owed.
type Subscription struct {
	Member                            string
	PaidUntil, AccessUntil, OwedSince value.Optional[asaas.Date]
	Disputed                          bool
}

// Find returns a subscription as its renewals are now.
func Find(ctx context.Context, db *pgxpool.Pool, scope, id string) (Subscription, error) {
	rows, _ := db.Query(ctx, `
		select member, paid_until::text, access_until::text, owed_since::text, disputed
		from paid_until where scope = $1 and id = $2`, scope, id)
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Subscription])
}
