package idem

// Waiting tells how many deliveries wait to be stored, and whether others are
// being stored.
func (i *Inbox) Waiting() (n int, storing bool) {
	i.arrivals.mu.Lock()
	defer i.arrivals.mu.Unlock()
	return len(i.arrivals.waiting), i.arrivals.storing > 0
}
