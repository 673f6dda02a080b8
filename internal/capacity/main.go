// Capacity prints the cost of events in processors, connections, log and disk, as
// docs/scale.md has it:
//
//	go run ./internal/capacity
//	go run ./internal/capacity -rates 500,5000 -body 4000 -trip 1ms
//
// It is arithmetic on numbers that were recorded, in load.json and log.json, and on
// assumptions, which are flags. To record them again, with nothing else on the
// machine:
//
//	go run ./internal/bench -json >load.json && mv load.json internal/capacity
//	go run ./internal/capacity/log -json >log.json && mv log.json internal/capacity
//
// Its tests then name the lines of BENCHMARKS.md and docs/scale.md to change.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func main() {
	a := assumed
	rates := flag.String("rates", "10,1000,100000", "events a second")
	flag.DurationVar(&a.trip, "trip", a.trip, "a round trip to Postgres")
	flag.DurationVar(&a.commit, "commit", a.commit, "a commit's wait for the disk and a synchronous replica")
	flag.Float64Var(&a.body, "body", a.body, "bytes of an event's body")
	flag.Float64Var(&a.days, "days", a.days, "Retention")
	flag.Float64Var(&a.busy, "busy", a.busy, "how busy processors and connections may be")
	flag.Float64Var(&a.cores, "cores", a.cores, "processors of the largest Postgres")
	ids := flag.String("ids", ascending, "how the provider makes ids: "+ascending+", as Asaas, or "+random+", as Zelta Pay")
	flag.Parse()
	r, err := recordings()
	if err != nil {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(1)
	}
	if *ids != ascending && *ids != random {
		fmt.Fprintf(os.Stderr, "capacity: -ids %s: give %s or %s\n", *ids, ascending, random)
		os.Exit(2)
	}
	fmt.Println(header)
	for rate := range strings.SplitSeq(*rates, ",") {
		n, err := strconv.ParseFloat(rate, 64)
		if err != nil || n <= 0 || flag.NArg() > 0 {
			fmt.Fprintf(os.Stderr, "capacity: -rates %s: give numbers, as in 10,1000, and flags only\n", *rates)
			os.Exit(2)
		}
		for _, m := range modes {
			fmt.Println(a.need(r, m, *ids, n))
		}
	}
}

// modes are those that a merchant chooses from.
var modes = []string{"inline", "inbox"}
