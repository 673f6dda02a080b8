package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Batcher sends the values of concurrent callers in batches, for brokers that take several
// messages in one request. A value is sent immediately while fewer than Requests batches
// are being sent. Values that come later share the next batch.
//
// The fields are settings: set them before the first call of [Batcher.Do]. Many
// goroutines may call that at once. A Batcher must not be copied after its first call.
type Batcher[T any] struct {
	// Send sends a batch, and returns an error or nil for each value, in the same
	// order. It must end by itself: callers that no longer wait do not stop it. A
	// panic is the error of each value.
	Send func(batch []T) []error

	MaxItems int         // the most values in a batch; default: 1
	Size     func(T) int // the size of a value; default: 0 for each
	MaxSize  int         // the largest sum of sizes in a batch; a larger value goes alone
	Requests int         // the most batches that are being sent at once; default: 1

	mu      sync.Mutex
	waiting []*batched[T]
	sending int // batches
}

// batched is a value that a caller of Do waits for.
type batched[T any] struct {
	value T
	err   chan error // has room for one
}

// Do sends a value, and returns its error. If ctx ends before that, Do returns the error
// of ctx: the value is not sent, or is being sent.
func (b *Batcher[T]) Do(ctx context.Context, value T) error {
	it := &batched[T]{value, make(chan error, 1)}
	b.add(it)
	select {
	case err := <-it.err:
		return err
	case <-ctx.Done():
		b.remove(it)
		return ctx.Err()
	}
}

func (b *Batcher[T]) add(it *batched[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, it)
	if b.sending < max(1, b.Requests) {
		b.sending++
		go b.sendAll()
	}
}

// remove forgets a value that no caller waits for, unless it is being sent.
func (b *Batcher[T]) remove(it *batched[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(other *batched[T]) bool { return other == it })
}

// sendAll sends batches until nothing waits.
func (b *Batcher[T]) sendAll() {
	for batch := b.next(); len(batch) > 0; batch = b.next() {
		values := make([]T, len(batch))
		for i, it := range batch {
			values[i] = it.value
		}
		var errs []error
		failed := Protect(func() error {
			if errs = b.Send(values); len(errs) != len(values) {
				return fmt.Errorf("broker: Send of the Batcher returned %d errors for %d values: it must return one for each, or nil", len(errs), len(values))
			}
			return nil
		})
		for i, it := range batch {
			if failed != nil {
				it.err <- failed
			} else {
				it.err <- errs[i]
			}
		}
	}
}

// next takes the next batch.
func (b *Batcher[T]) next() []*batched[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, size := 0, 0
	for n < min(len(b.waiting), max(1, b.MaxItems)) {
		if b.Size != nil {
			size += b.Size(b.waiting[n].value)
		}
		if n > 0 && size > b.MaxSize {
			break
		}
		n++
	}
	batch := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	if n == 0 {
		b.sending--
	}
	return batch
}
