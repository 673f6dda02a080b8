package asaastest

import (
	"encoding/json"
	"net/http"
	"slices"
)

// listCharges lists the charges that are not removed, newest first.
func (f *Fake) listCharges(r *http.Request) (any, error) {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	var found []*charge
	for _, c := range f.account.charges {
		if !c.is.Deleted && c.isChosen(r.URL.Query()) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *charge) int { return b.order - a.order })
	bodies := make([]json.RawMessage, 0, len(found))
	for _, c := range found {
		bodies = append(bodies, c.data)
	}
	return pageOf(r, bodies)
}

func (f *Fake) getCharge(r *http.Request) (any, error) {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	c := f.account.charges[r.PathValue("id")]
	if c == nil {
		return nil, refused(http.StatusNotFound, "not_found", "A cobrança informada não foi encontrada.")
	}
	return c.data, nil
}

// listTransactions lists the statement, newest first.
func (f *Fake) listTransactions(r *http.Request) (any, error) {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	from, until := r.URL.Query().Get("startDate"), r.URL.Query().Get("finishDate")
	found := slices.DeleteFunc(slices.Clone(f.account.statement), func(t transaction) bool {
		return string(t.Date) < from || until != "" && string(t.Date) > until
	})
	slices.Reverse(found)
	return pageOf(r, found)
}
