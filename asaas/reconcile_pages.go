package asaas

import (
	"context"
	"fmt"
)

// atOnce is the number of charges that are looked up in the database at once: that reads all
// events, for any number of charges.
const atOnce = 1000

// do does a scan from where the run stands. A list from which charges vanish while it
// is read can skip others: it is read once more then, if it has fewer rows than any page said.
func (r *reconciliation) do(ctx context.Context, s scan) error {
	whole := r.next.Offset == 0
	if r.next == r.cursor && !whole { // resumed
		r.next.Offset = max(0, r.next.Offset-pageSize)
	}
	for again := whole; ; again = false {
		rows := make(map[string]bool)
		total, err := r.pages(ctx, s, rows)
		if err != nil {
			return err
		}
		if !again || len(rows) >= total {
			return nil
		}
		r.next.Offset = 0
	}
}

// pages reads the pages of a scan, and notes the charges on them.
func (r *reconciliation) pages(ctx context.Context, s scan, rows map[string]bool) (total int, err error) {
	for more := true; more; {
		before := r.next
		page, err := s.page(ctx)
		if err != nil {
			r.next = before
			return 0, err
		}
		known := len(rows)
		for _, id := range page.rows {
			rows[id] = true
		}
		if more = page.more; more && len(rows) == known {
			return 0, fmt.Errorf("the list %s has no end, its pages repeat: see what answers at the API's address", s.name)
		}
		total = max(total, page.total)
		for _, p := range page.payments {
			if !r.seen[p.ID] {
				r.seen[p.ID] = true
				r.batch = append(r.batch, found{p, s.name})
			}
		}
		if len(r.batch) >= atOnce && more {
			if err := r.flush(ctx); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}
