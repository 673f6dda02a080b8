package main

import (
	"context"
	"runtime"
	"time"
)

// account adds up the times of a contender's turns.
type account struct {
	answering, settling  time.Duration // settling includes answering
	events, answers      int64
	trips                int64
	here, postgres       time.Duration // processor time
	heapBefore, heapLast uint64
	rss                  uint64
	goroutines           int
	turns                int
}

// turn lets a contender receive events as long as more says so, and settle them.
func (one *contender) turn(ctx context.Context, p *provider, postmaster int, more func() bool) error {
	a := &one.account
	heap := heapInUse()
	if a.turns == 0 {
		a.heapBefore = heap
	}
	events, answers, trips := one.acknowledged.Load(), one.answers.total.Load(), one.trips()
	start, here, postgres := time.Now(), processorTime(), postgresTime(postmaster)
	p.run(ctx, one.receiver, more)
	a.answering += time.Since(start)
	var err error
	if one.settle != nil {
		err = one.settle(context.WithoutCancel(ctx))
	}
	a.settling += time.Since(start)
	a.here += processorTime() - here
	a.postgres += postgresTime(postmaster) - postgres
	a.events += one.acknowledged.Load() - events
	a.answers += one.answers.total.Load() - answers
	a.trips += one.trips() - trips
	a.heapLast, a.rss, a.goroutines = heapInUse(), residentMemory(), runtime.NumGoroutine()
	a.turns++
	return err
}

// warm runs a first turn that does not count, except for the ledger.
func (one *contender) warm(ctx context.Context, p *provider, more func() bool) error {
	err := one.turn(ctx, p, 0, more)
	one.account = account{}
	one.answers, one.repeats = histogram{}, histogram{}
	one.not200.Store(0)
	return err
}

func (one *contender) trips() int64 {
	if one.wire == nil {
		return 0
	}
	return one.wire.trips.Load()
}

// heapInUse returns the heap that is still in use after a collection.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // memory that finalizers of the first have set free
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
