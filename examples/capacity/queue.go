package main

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// system is processes that share one machine's processors, or one Postgres: each of
// so many workers waits for round trips, and then needs a processor.
type system struct {
	workers    int // of all processes
	processors int
	wait       time.Duration // of an event, for which nobody needs a processor
	work       time.Duration // of an event, on a processor
}

// predict is how many events a second the workers get done: mean value analysis of
// a closed network, with a station of several servers replaced by a faster one and a
// delay (Seidmann).
func (s system) predict() float64 {
	m := float64(s.processors)
	work := s.work.Seconds() / m
	wait := s.wait.Seconds() + s.work.Seconds()*(m-1)/m
	var waiting, rate float64 // at the processors
	for n := 1; n <= s.workers; n++ {
		there := work * (1 + waiting)
		rate = float64(n) / (wait + there)
		waiting = rate * there
	}
	return rate
}

// limit is the most that there can be, with any number of workers.
func (s system) limit() float64 { return float64(s.processors) / s.work.Seconds() }

// simulate has the workers process events in virtual time, with times that vary as
// those of independent arrivals do, and returns how many a second they get done.
func (s system) simulate(events int, random *rand.Rand) float64 {
	vary := func(mean time.Duration) float64 { return mean.Seconds() * random.ExpFloat64() }
	ready := make(times, 0, s.workers) // when workers come back from waiting
	for range s.workers {
		ready = append(ready, vary(s.wait))
	}
	heap.Init(&ready)
	free := make(times, s.processors) // when processors are
	var end float64
	for range events {
		start := max(heap.Pop(&ready).(float64), heap.Pop(&free).(float64))
		end = start + vary(s.work)
		heap.Push(&free, end)
		heap.Push(&ready, end+vary(s.wait))
	}
	return float64(events) / end
}

// times is a heap, the earliest first.
type times []float64

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(x any)        { *t = append(*t, x.(float64)) }
func (t *times) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
