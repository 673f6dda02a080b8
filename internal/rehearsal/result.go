package main

import (
	"fmt"
	"io"
	"time"
)

// speed is the time that some events took.
type speed struct {
	events             int
	answering, working time.Duration // until all were answered, and until all were done
}

func (s *speed) add(other speed) {
	s.events += other.events
	s.answering += other.answering
	s.working += other.working
}

// result holds the rows of the table.
type result struct {
	one, all speed // of one process of each kind, and of all

	sent, effects             int
	missing                   int // acknowledged, and without an effect after the failover
	lost, doubled, outOfOrder int
	refused                   int // deliveries
	firstAnswer               time.Duration
}

// print prints the table. It returns an error if an event was lost or doubled.
func (r *result) print(out io.Writer, c config) error {
	line := func(name string, value any) { fmt.Fprintf(out, "%-52s %8v\n", name, value) }
	fmt.Fprintln(out)
	line("events sent, each until it was answered 200", r.sent)
	line("effects", r.effects)
	line("acknowledged, and lost by the promotion", r.missing)
	if c.standby == "async" {
		line("brought back by the provider's list of events", r.missing-r.lost)
	}
	line("lost", r.lost)
	line("doubled", r.doubled)
	line("out of order", r.outOfOrder)
	line("deliveries without a 200", r.refused)
	line("from the kill of the primary to the next 200", r.firstAnswer.Round(time.Millisecond))
	if r.one.events > 0 {
		line(fmt.Sprintf("rate of answers, %d receivers to one", c.receivers), ratio(r.one.answering, r.all.answering))
		line(fmt.Sprintf("rate of work done, %d workers to one", c.workers), ratio(r.one.working, r.all.working))
	}
	if r.lost > 0 || r.doubled > 0 {
		return fmt.Errorf("%d events are lost and %d doubled", r.lost, r.doubled)
	}
	_, err := fmt.Fprintf(out, "\nEach of the %d events has one effect.\n", r.sent)
	return err
}

// ratio is of the rates, for as many events.
func ratio(one, all time.Duration) string { return fmt.Sprintf("%.2f", one.Seconds()/all.Seconds()) }
