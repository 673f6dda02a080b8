// Package batch writes items in groups: items that arrive while a group is being written form the next group.
// An item that arrives alone does not wait.
package batch

import (
	"context"
	"slices"
	"sync"
)

// Writer groups items of type T, which are written with a result of type R each.
type Writer[T, R any] struct {
	write func([]T) []R
	size  func(T) int

	mu      sync.Mutex
	waiting []*item[T, R]
	writing bool
}

// The largest group.
const (
	maxItems = 256
	maxSize  = 4 << 20
)

type item[T, R any] struct {
	value  T
	result chan R // has a buffer of one
}

// NewWriter returns a Writer. write writes a group and returns the results in
// the same order; it is called for one group at a time, and must return. size is
// an item's size in bytes.
func NewWriter[T, R any](write func([]T) []R, size func(T) int) *Writer[T, R] {
	return &Writer[T, R]{write: write, size: size}
}

// Write writes an item and returns its result. If ctx ends first, ok is false: the item is not written, or is
// being written.
func (w *Writer[T, R]) Write(ctx context.Context, value T) (result R, ok bool) {
	it := &item[T, R]{value, make(chan R, 1)}
	w.add(it)
	select {
	case result = <-it.result:
		return result, true
	case <-ctx.Done():
		w.remove(it)
		return result, false
	}
}

func (w *Writer[T, R]) add(it *item[T, R]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, it)
	if !w.writing {
		w.writing = true
		go w.writeAll()
	}
}

// remove forgets an item without a waiter, unless it is being written.
func (w *Writer[T, R]) remove(it *item[T, R]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(other *item[T, R]) bool { return other == it })
}

// writeAll writes groups until nothing waits.
func (w *Writer[T, R]) writeAll() {
	for group := w.next(); len(group) > 0; group = w.next() {
		values := make([]T, len(group))
		for i, it := range group {
			values[i] = it.value
		}
		for i, result := range w.write(values) {
			group[i].result <- result
		}
	}
}

// next takes the next group.
func (w *Writer[T, R]) next() []*item[T, R] {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
	for n < min(len(w.waiting), maxItems) {
		size += w.size(w.waiting[n].value)
		if n > 0 && size > maxSize {
			break
		}
		n++
	}
	group := slices.Clone(w.waiting[:n])
	w.waiting = slices.Delete(w.waiting, 0, n)
	w.writing = n > 0
	return group
}

// Waiting returns how many items wait for their group.
func (w *Writer[T, R]) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}
