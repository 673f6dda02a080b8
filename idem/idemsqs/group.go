package idemsqs

import (
	"context"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// maxGroup is the number of entries in one request.
const maxGroup = 10

// sendTime is how long a request may take, with the client's retries.
const sendTime = 10 * time.Second

// grouper sends items of concurrent callers in groups: those that come while requests
// are in flight share the next one.
type grouper[T any] struct {
	send     func(ctx context.Context, group []T) []error // one for each
	size     func(T) int
	maxSize  int // of a group
	requests int // at the same time

	mu      sync.Mutex
	waiting []*item[T]
	running int // requests
}

type item[T any] struct {
	ctx    context.Context
	value  T
	result chan error // has room for one
}

// do sends a value, and waits until ctx ends.
func (g *grouper[T]) do(ctx context.Context, value T) error {
	it := &item[T]{ctx, value, make(chan error, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, it)
	if g.running < g.requests {
		g.running++
		go g.sendAll()
	}
	g.mu.Unlock()
	select {
	case err := <-it.result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sendAll sends groups until nothing waits.
func (g *grouper[T]) sendAll() {
	for group := g.next(); len(group) > 0; group = g.next() {
		values := make([]T, len(group))
		for i, it := range group {
			values[i] = it.value
		}
		ctx, cancel := context.WithTimeout(context.Background(), sendTime)
		var errs []error
		err := pgtx.Protect(func() error { errs = g.send(ctx, values); return nil }) // the client has middleware of the application's
		if err != nil {
			errs = fill(len(group), err)
		}
		for i, err := range errs {
			group[i].result <- err
		}
		cancel()
	}
}

// next takes the next group, without those that nobody waits for any more.
func (g *grouper[T]) next() (group []*item[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	size, taken := 0, 0
	for _, it := range g.waiting {
		if it.ctx.Err() == nil {
			size += g.size(it.value)
			if len(group) == maxGroup || len(group) > 0 && size > g.maxSize {
				break
			}
			group = append(group, it)
		}
		taken++
	}
	g.waiting = append(g.waiting[:0:0], g.waiting[taken:]...)
	if len(group) == 0 {
		g.running--
	}
	return group
}
