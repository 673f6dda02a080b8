package idemsqs

import (
	"context"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// maxBatch is the number of entries in one request.
const maxBatch = 10

// sendTime is how long a request may take, with the client's retries.
const sendTime = 10 * time.Second

// batcher sends items of concurrent callers in batches: those that come while requests
// are in flight share the next one.
type batcher[T any] struct {
	send     func(ctx context.Context, batch []T) []error // one for each
	size     func(T) int
	maxSize  int // of a batch
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
func (b *batcher[T]) do(ctx context.Context, value T) error {
	it := &item[T]{ctx, value, make(chan error, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, it)
	if b.running < b.requests {
		b.running++
		go b.sendAll()
	}
	b.mu.Unlock()
	select {
	case err := <-it.result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sendAll sends batches until nothing waits.
func (b *batcher[T]) sendAll() {
	for batch := b.next(); len(batch) > 0; batch = b.next() {
		values := make([]T, len(batch))
		for i, it := range batch {
			values[i] = it.value
		}
		ctx, cancel := context.WithTimeout(context.Background(), sendTime)
		var errs []error
		err := pgtx.Protect(func() error { errs = b.send(ctx, values); return nil }) // the client has middleware of the application's
		if err != nil {
			errs = fill(len(batch), err)
		}
		for i, err := range errs {
			batch[i].result <- err
		}
		cancel()
	}
}

// next takes the next batch, without those that nobody waits for any more.
func (b *batcher[T]) next() (batch []*item[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	size, taken := 0, 0
	for _, it := range b.waiting {
		if it.ctx.Err() == nil {
			size += b.size(it.value)
			if len(batch) == maxBatch || len(batch) > 0 && size > b.maxSize {
				break
			}
			batch = append(batch, it)
		}
		taken++
	}
	b.waiting = append(b.waiting[:0:0], b.waiting[taken:]...)
	if len(batch) == 0 {
		b.running--
	}
	return batch
}
