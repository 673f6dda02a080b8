// Rehearsal shows the losses of a failover, on one machine: nothing, if commits wait for the
// replica. It runs several receivers, several workers, a load balancer in front of the
// receivers, and a Postgres with a streaming replica. A provider sends events until each
// is answered 200. Meanwhile processes are killed, then the primary is, and the replica
// is promoted. At the end it compares the events that were sent with their effects:
//
//	go run ./internal/rehearsal
//
// It needs PostgreSQL's programs, or npm to fetch them, and nothing else. It ends
// with status 1 if an event was lost or took effect twice.
//
// With -standby async commits do not wait for the replica. The promotion then loses the
// events that the primary had acknowledged and not yet sent to the replica, and the
// provider does not deliver them again: it has its 200. The rehearsal finds them by
// comparing the provider's list of events with the effects, and delivers them again. One
// that comes after a later event of its payment is out of order. The table counts both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/paghooks/paghooks/internal/interrupt"
)

// config is the configuration of a rehearsal.
type config struct {
	payments  int // of the part with the failover; each has four events
	rate      int // payments of each round that measures a rate
	rounds    int
	receivers int // processes
	workers   int // processes
	at        int // deliveries at once
	standby   string
	durable   bool
	verbose   bool
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "child" {
		if err := child(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "rehearsal:", err)
			os.Exit(1)
		}
		return
	}
	c := config{}
	longest := flag.Duration("longest", 5*time.Minute, "how long all may take")
	flag.IntVar(&c.payments, "payments", 500, "payments of the part with the failover; each has four events")
	flag.IntVar(&c.rate, "rate", 200, "payments of each round that measures a rate; 0 measures none")
	flag.IntVar(&c.rounds, "rounds", 1, "rounds that measure a rate, with one process of each kind and with all in turns")
	flag.IntVar(&c.receivers, "receivers", 3, "processes that receive")
	flag.IntVar(&c.workers, "workers", 3, "processes that work")
	flag.IntVar(&c.at, "at", 32, "deliveries at once")
	flag.StringVar(&c.standby, "standby", "sync", "sync: commits wait for the replica; async: they do not")
	flag.BoolVar(&c.durable, "durable", true, "commits wait for the disk, as in production")
	flag.BoolVar(&c.verbose, "v", false, "show what the processes log")
	flag.Parse()
	if flag.NArg() > 0 || c.payments < 8 || min(c.receivers, c.workers, c.at) < 1 || c.standby != "sync" && c.standby != "async" {
		fmt.Fprintln(os.Stderr, "rehearsal: it takes flags only, 8 payments at least, and one of all else:")
		flag.Usage()
		os.Exit(2)
	}
	ctx, out := interrupt.Context(os.Stdout)
	ctx, cancel := context.WithTimeout(ctx, *longest)
	defer cancel()
	if err := run(ctx, c, out); err != nil {
		fmt.Fprintln(os.Stderr, "rehearsal:", interrupt.Explain(ctx, err))
		os.Exit(1)
	}
}

// run rehearses, prints the table, and returns an error if an event was lost or
// doubled.
func run(ctx context.Context, c config, out io.Writer) (err error) {
	p, err := startPair(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	fmt.Fprintf(out, "%s and a replica, %s; %d processes receive, %d work\n", p.primary.Origin(), c.about(), c.receivers, c.workers)
	r := &rehearsal{config: c, pair: p}
	if err := r.measure(ctx); err != nil {
		return err
	}
	if err := r.failOver(ctx); err != nil {
		return err
	}
	return r.result.print(out, c)
}
