package console

import "time"

// WaitForCounts has the overview wait for as long as counting takes.
func (h *Handler) WaitForCounts() { h.moment = time.Minute }

// Pages are the names of all pages, with their methods.
func Pages() map[string]string {
	all := map[string]string{}
	for name, p := range pages {
		all[name] = p.method
	}
	return all
}
