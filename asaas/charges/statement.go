package charges

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
)

// statement copies the movements of the account's money, and reads the charges that they name, of any age.
func (r *run) statement(ctx context.Context, from, until asaas.Date) (bool, error) {
	return pages(ctx, from == until, pageOf[asaas.Transaction]{
		get: func(ctx context.Context, offset int) (rows []asaas.Transaction, more bool, err error) {
			page, err := call(ctx, r, func() (*asaas.TransactionPage, error) { return r.client.Statement(ctx, from, until, offset) })
			if err != nil {
				return nil, false, err
			}
			return page.Data.Or(nil), page.HasMore.Or(len(page.Data.Or(nil)) == perPage), nil
		},
		id:   func(t asaas.Transaction) string { return t.ID.Or("") },
		take: r.takeMovement,
	})
}

// takeMovement reads the charge that a movement names, and then copies the movement: one that is copied and older
// than the gap was read for before.
func (r *run) takeMovement(ctx context.Context, t asaas.Transaction) error {
	if _, ok := t.Value.Get(); !ok || day(t.Date.Or("")) == "" || t.ID.Or("") == "" {
		return fmt.Errorf("a movement of the statement has no id, no day or no value, %q: see what answers at the API's address", t.ID.Or(""))
	}
	if t.Date.Or("") < asaas.Date(dayOf(r.Since.AddDate(0, 0, -1))) {
		known, err := one[bool](ctx, r.db, `select exists (select from asaas_statement where scope = $1 and id = $2)`, r.Scope, t.ID.Or(""))
		if err != nil || known {
			return err
		}
	}
	if err := r.ask(ctx, t.PaymentID.Or("")); err != nil || r.DryRun {
		return err
	}
	return exec(ctx, r.db, `insert into asaas_statement (scope, id, day, type, value, balance, payment, split, anticipation, transfer)
		values ($1, $2, $3::date, $4, $5, $6, nullif($7, ''), nullif($8, ''), nullif($9, ''), nullif($10, '')) on conflict do nothing`,
		r.Scope, t.ID.Or(""), string(t.Date.Or("")), t.Type.Or(""), t.Value.Or(asaas.Money{}), orNull(t.Balance),
		t.PaymentID.Or(""), t.SplitID.Or(""), t.AnticipationID.Or(""), t.TransferID.Or(""))
}

// firstOfStatement returns the first day of the statement that a run reads: it leaves no gap behind the last day that
// is copied, and reads some days once more, for movements that Asaas has dated late.
func (r *run) firstOfStatement(gap, last asaas.Date) asaas.Date {
	first := gap
	if last != "" {
		first = min(first, asaas.Date(timeOf(last).AddDate(0, 0, -2).Format(time.DateOnly)))
	}
	if r.Unsettled { // once a week
		first = min(first, asaas.Date(dayOf(r.Until.Add(-oldest))))
	}
	return first
}

// lastOfStatement returns the last day of the statement that is copied; "" for none.
func (r *run) lastOfStatement(ctx context.Context) (asaas.Date, error) {
	return one[asaas.Date](ctx, r.db, `select coalesce(max(last)::text, '') from asaas_statement_days where scope = $1`, r.Scope)
}

// hasStatement records the days that are copied. Those that do not join the days of before take their place if they
// are newer.
func (r *run) hasStatement(ctx context.Context, s scan) error {
	if r.DryRun {
		return nil
	}
	return exec(ctx, r.db, `insert into asaas_statement_days as n (scope, first, last, copied) values ($1, $2::date, $3::date, $4)
		on conflict (scope) do update set first = case when n.first <= excluded.last + 1 and excluded.first <= n.last + 1 then least(n.first, excluded.first)
			when excluded.last > n.last then excluded.first else n.first end, last = greatest(n.last, excluded.last),
			copied = case when excluded.last >= n.last then excluded.copied else n.copied end`,
		r.Scope, string(s.first), string(s.last), r.at.Began)
}

// chargebacks reads the charges whose dispute began in some days.
func (r *run) chargebacks(ctx context.Context, from, until asaas.Date) (bool, error) {
	whole, err := pages(ctx, from == until, pageOf[asaas.Chargeback]{
		get: func(ctx context.Context, offset int) (rows []asaas.Chargeback, more bool, err error) {
			page, err := call(ctx, r, func() (*asaas.ChargebackPage, error) { return r.client.Chargebacks(ctx, from, until, offset) })
			if err != nil {
				return nil, false, err
			}
			return page.Data.Or(nil), page.HasMore.Or(len(page.Data.Or(nil)) == perPage), nil
		},
		id:   func(c asaas.Chargeback) string { return c.ID.Or("") },
		take: func(ctx context.Context, c asaas.Chargeback) error { return r.ask(ctx, c.Payment.Or("")) },
	})
	if isRefusal(err) { // the key may lack the permission
		return true, nil
	}
	return whole, err
}

func orNull(m value.Optional[asaas.Money]) *asaas.Money {
	if amount, ok := m.Get(); ok {
		return &amount
	}
	return nil
}
