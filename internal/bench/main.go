// Bench measures the cost of receiving webhooks, and checks at the end that no
// payment was lost or booked twice. It starts a Postgres that commits to the
// disk, the implementations to compare, and a load that behaves like Asaas:
//
//	go run ./internal/bench
//
// All implementations receive the same kind of bodies, have the same work (one
// UPDATE) and take short turns in one run, so that their ratios hold although a
// machine's speed does not:
//
//	first   idem.Inbox with WorkFirst: works, then answers
//	inbox   idem.Inbox: stores, answers, and has workers process what is stored
//	ingest  idem.Inbox whose workers run only at the end: the cost of storing
//	hand    the same work by hand on pgx, in the four round trips that pgx.Tx takes
//	insert  by hand: one committed INSERT for each delivery, nothing else
//	naive   by hand: insert, and workers that claim one event each; without order or retries
//	charges the same with charges.Handler: copies the charge, and books the difference
//	upsert  the same by hand: it decodes the whole event, and copies the charge by one upsert
//	river   a job of River for each delivery, unique by the event's id; its worker does the
//	        work and completes the job in one transaction; without order
//
// The receivers written by hand decode the three fields that the work needs; ours
// decodes the whole typed event. River runs four jobs for each connection at once, and
// fetches every millisecond: by its defaults, every 100, it would be slower.
//
//	go run ./internal/bench -mode first,hand -at 1       # one delivery at a time
//	go run ./internal/bench -mode first,hand -rtt 1ms    # each round trip to Postgres takes 1 ms longer
//	go run ./internal/bench -postgres "$URL"              # another Postgres; by default IDEMTEST_DATABASE_URL, or one of its own
//
// In a Postgres that is named, all tables are in schemas paghooks_bench_…, which
// are dropped at the end. Ctrl-C ends a run early, with the numbers so far.
//
// # The load
//
// As many deliveries as -at says are in flight at once. Each event has an id of
// its own; 5 % of the deliveries repeat an event that was answered 200 before, 1 % of the
// events are delivered twice at the same moment. A delivery that is not answered 200
// within 10 seconds is delivered again, until it is. The events are about 10,000
// charges, in turn.
//
// # The numbers
//
//	events/s             events acknowledged, each counted once, by the time that the answers took
//	end to end/s         the same by the time until their work was committed
//	p50, p99             of the time to each answer
//	round trips/event    to Postgres, counted on the wire
//
// # The ledger
//
// Every event that was acknowledged has its effect exactly once, and no other
// event has one: there are as many payments as were acknowledged, and of the same
// sum. The amounts are so different that a payment lost and another one doubled do
// not make up for each other. Otherwise the exit status is 1.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/paghooks/paghooks/internal/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := config{}
	flag.Func("mode", "what to compare (default "+strings.Join(allModes, ",")+")", c.setModes)
	flag.IntVar(&c.at, "at", 64, "deliveries in flight at once")
	flag.DurationVar(&c.turn, "turn", time.Second, "how long a mode receives events in each turn")
	flag.IntVar(&c.turns, "turns", 10, "turns of each mode")
	flag.IntVar(&c.conns, "conns", 16, "connections that each mode's pool may have")
	flag.DurationVar(&c.rtt, "rtt", 0, "how much longer each round trip to Postgres takes")
	flag.StringVar(&c.postgres, "postgres", "", "connection `string` of a Postgres; by default IDEMTEST_DATABASE_URL, or a Postgres of its own")
	flag.Parse()
	if flag.NArg() > 0 || c.at < 1 || c.turns < 1 || c.conns < 1 || c.turn <= 0 || c.rtt < 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := c.run(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

var allModes = []string{"first", "hand", "charges", "upsert", "ingest", "insert", "inbox", "naive", "river"}

// config is the configuration of a run.
type config struct {
	modes            []string
	at, conns, turns int
	turn, rtt        time.Duration
	postgres         string
}

func (c *config) setModes(list string) error {
	c.modes = strings.Split(list, ",")
	for n, m := range c.modes {
		if !slices.Contains(allModes, m) || slices.Contains(c.modes[:n], m) {
			return fmt.Errorf("%q is no mode, or there twice: name some of %s", m, strings.Join(allModes, ","))
		}
	}
	return nil
}

// run lets all contenders take turns, compares their ledgers and prints the results. A wrong
// ledger is an error.
func (c *config) run(ctx context.Context, out, progress io.Writer) (err error) {
	if c.modes == nil {
		c.modes = allModes
	}
	url := cmp.Or(c.postgres, os.Getenv("IDEMTEST_DATABASE_URL"))
	if url == "" {
		cluster := &postgres.Cluster{Durable: true}
		if err := cluster.Start(ctx); err != nil {
			return fmt.Errorf("starting Postgres: name one with -postgres, or: %w", err)
		}
		defer func() { err = errors.Join(err, cluster.Close()) }()
		url = cluster.URL()
	}
	run := fmt.Sprintf("%08x", rand.Uint32())
	var all []*contender
	defer func() {
		for _, one := range all {
			err = errors.Join(err, one.end())
		}
	}()
	for _, mode := range c.modes {
		one, err := c.enter(ctx, url, mode, run)
		if err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
		all = append(all, one)
	}
	if err := c.race(ctx, all, progress); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %s, %d processors; %d at once\n\n", time.Now().Format(time.DateOnly), runtime.Version(), runtime.NumCPU(), c.at)
	errs := []error{printTable(out, all), printRatios(out, all)}
	for _, one := range all {
		errs = append(errs, one.compare(context.WithoutCancel(ctx)))
	}
	return errors.Join(errs...)
}

// race has each contender take its turn in each round, another one first in each.
func (c *config) race(ctx context.Context, all []*contender, progress io.Writer) error {
	for round := -1; round < c.turns && ctx.Err() == nil; round++ {
		for n := range all {
			one := all[(max(round, 0)+n)%len(all)]
			if err := one.take(ctx, c); err != nil {
				return fmt.Errorf("%s: %w", one.mode, err)
			}
			if round < 0 { // a first turn warms up
				one.account = account{}
			}
		}
		fmt.Fprintf(progress, "turn %d of %d\n", round+1, c.turns)
	}
	return nil
}

// account adds up a contender's turns.
type account struct {
	answering, settling         time.Duration // settling includes answering
	acknowledged, not200, trips int64
	answers                     []time.Duration // of the deliveries that were answered 200
}

// take lets a contender receive events for a turn, and settle them.
func (one *contender) take(ctx context.Context, c *config) error {
	trips, start := one.wire.trips.Load(), time.Now()
	one.load(ctx, c.at, start.Add(c.turn))
	a := &one.account
	a.answering += time.Since(start)
	err := one.settle(context.WithoutCancel(ctx))
	a.settling += time.Since(start)
	a.trips += one.wire.trips.Load() - trips
	return err
}

func (a *account) rate() float64     { return float64(a.acknowledged) / a.answering.Seconds() }
func (a *account) endToEnd() float64 { return float64(a.acknowledged) / a.settling.Seconds() }

// quantile returns a quantile of the answers' times, in milliseconds.
func (a *account) quantile(share float64) float64 {
	if len(a.answers) == 0 {
		return 0
	}
	slices.Sort(a.answers)
	return a.answers[int(share*float64(len(a.answers)-1))].Seconds() * 1e3
}

func printTable(out io.Writer, all []*contender) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, cell func(*contender) string) {
		fmt.Fprint(w, name, "\t")
		for _, one := range all {
			fmt.Fprint(w, cell(one), "\t")
		}
		fmt.Fprintln(w)
	}
	line("", func(one *contender) string { return one.mode })
	line("events/s", func(one *contender) string { return fmt.Sprintf("%.0f", one.account.rate()) })
	line("end to end/s", func(one *contender) string {
		if one.stores {
			return ""
		}
		return fmt.Sprintf("%.0f", one.account.endToEnd())
	})
	line("p50 ms", func(one *contender) string { return fmt.Sprintf("%.2f", one.account.quantile(0.5)) })
	line("p99 ms", func(one *contender) string { return fmt.Sprintf("%.2f", one.account.quantile(0.99)) })
	line("not 200", func(one *contender) string { return fmt.Sprint(one.account.not200) })
	line("round trips/event", func(one *contender) string {
		return fmt.Sprintf("%.2f", float64(one.account.trips)/float64(one.account.acknowledged))
	})
	return w.Flush()
}

// printRatios prints the ratios that say something, of events per second.
func printRatios(out io.Writer, all []*contender) error {
	modes := map[string]*contender{}
	for _, one := range all {
		modes[one.mode] = one
	}
	fmt.Fprintln(out)
	for _, pair := range [][2]string{{"first", "hand"}, {"charges", "upsert"}, {"charges", "hand"}, {"ingest", "insert"}, {"inbox", "naive"}, {"inbox", "river"}, {"inbox", "first"}} {
		of, to := modes[pair[0]], modes[pair[1]]
		if of == nil || to == nil {
			continue
		}
		rate, what := (*account).endToEnd, " end to end"
		if of.stores {
			rate, what = (*account).rate, ""
		}
		if _, err := fmt.Fprintf(out, "%s to %s%s: %.2f\n", pair[0], pair[1], what, rate(&of.account)/rate(&to.account)); err != nil {
			return err
		}
	}
	return nil
}
