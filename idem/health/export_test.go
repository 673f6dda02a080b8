package health

import (
	"context"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Look looks once, in a process that has run for long.
func (n *Notifier) Look(ctx context.Context) { n.look(ctx, true) }

// Age makes what this process remembers older.
func (n *Notifier) Age(d time.Duration) {
	older := func(t time.Time) time.Time {
		if t.IsZero() {
			return t
		}
		return t.Add(-d)
	}
	for key, of := range n.book.own {
		of.Notice = store.Notice{NoticeKey: key, Since: older(of.Since), Seen: older(of.Seen), Told: older(of.Told), Until: older(of.Until)}
		n.book.own[key] = of
	}
}
