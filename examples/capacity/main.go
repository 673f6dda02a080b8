// Capacity prints what events cost in processors, connections, log, disk and money,
// as docs/scale.md has it:
//
//	go run ./examples/capacity
//	go run ./examples/capacity -rates 500,5000 -body 4000 -trip 1ms
//
// It is arithmetic on numbers that were measured (see BENCHMARKS.md) and on
// assumptions, which are flags.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
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
	flag.Float64Var(&a.images, "images", a.images, "bytes of log that random ids add to an event: 5300 for Zelta Pay's")
	flag.Parse()
	fmt.Println(header)
	for rate := range strings.SplitSeq(*rates, ",") {
		n, err := strconv.ParseFloat(rate, 64)
		if err != nil || n <= 0 || flag.NArg() > 0 {
			fmt.Fprintf(os.Stderr, "capacity: -rates %s: give numbers, as in 10,1000, and flags only\n", *rates)
			os.Exit(2)
		}
		for _, m := range modes {
			fmt.Println(a.need(m, n))
		}
	}
}

// mode is what an event costs in one of the modes, as BENCHMARKS.md has it, with
// the processor time of what sent the load.
type mode struct {
	name  string
	here  time.Duration // processor time of the application
	there time.Duration // and of Postgres
	trips float64       // round trips
	log   float64       // bytes of Postgres's log beside the body, see examples/capacity/log
	body  bool          // the body is in the log
}

var (
	inline = mode{name: "inline", here: 414 * time.Microsecond, there: 418 * time.Microsecond, trips: 3.11, log: 540}
	ingest = mode{name: "ingest", here: 176 * time.Microsecond, there: 142 * time.Microsecond, trips: 0.08}
	inbox  = mode{name: "inbox", here: 579 * time.Microsecond, there: 862 * time.Microsecond, trips: 3.40, log: 2100, body: true}
	modes  = []mode{inline, inbox}
)

// row is what an event that is done takes in idem_events, with its indexes:
// 7,010 MB for 30 million.
const row = 7010 * (1 << 20) / 30e6

// assumptions are what nobody has measured here.
type assumptions struct {
	trip   time.Duration // a round trip between machines of one data center
	commit time.Duration // the disk of a cloud, and a replica next door
	body   float64       // bytes; Asaas's payments have 1.5 to 3 kB
	images float64       // bytes of an event's images of pages beyond those of ids that ascend
	days   float64       // Retention
	busy   float64       // processors and connections, so that queues stay short
	cores  float64       // of the largest Postgres that one wants to run
	least  float64       // connections of a pool

	app, postgres float64 // US dollars for a processor and month, memory included
	disk, archive float64 // US dollars for a GB and month
	archived      float64 // days of log that backups keep
}

var assumed = assumptions{
	trip: 500 * time.Microsecond, commit: 2 * time.Millisecond, body: 2000, days: 45, busy: 0.5, cores: 16, least: 4,
	app: 30, postgres: 60, disk: 0.15, archive: 0.03, archived: 7,
}

// need is what a rate needs.
type need struct {
	rate        float64
	mode        string
	app         float64 // processors
	postgres    float64 // processors
	databases   float64
	connections float64
	log         float64 // bytes a second
	logDay      float64 // GB
	disk        float64 // GB, of the events that are kept
	dollars     float64 // a month
}

const (
	day = 24 * 60 * 60
	gb  = 1e9
)

func (a assumptions) need(m mode, rate float64) need {
	n := need{rate: rate, mode: m.name}
	n.app = atLeast(1, rate*m.here.Seconds()/a.busy)
	n.postgres = atLeast(1, rate*m.there.Seconds()/a.busy)
	n.databases = atLeast(1, n.postgres/a.cores)
	held := m.trips*a.trip.Seconds() + m.there.Seconds() + a.commit.Seconds() // for which an event has a connection
	n.connections = max(a.least, atLeast(1, rate*held/a.busy))
	perEvent := m.log + a.images
	if m.body {
		perEvent += a.body
	}
	n.log = rate * perEvent
	n.logDay = n.log * day / gb
	n.disk = rate * day * a.days * row / gb
	// A replica of each database has its processors and its disk once more.
	n.dollars = n.app*a.app + 2*n.postgres*a.postgres + 2*n.disk*a.disk + n.logDay*a.archived*a.archive
	return n
}

// atLeast rounds up to whole ones.
func atLeast(least, n float64) float64 {
	whole := float64(int(n))
	if whole < n {
		whole++
	}
	return max(least, whole)
}

const header = `| events/s | mode | application, cores | Postgres, cores | databases | connections | log | log a day | disk for the events | US$ a month |
|---|---|---|---|---|---|---|---|---|---|`

// String is a line of the table.
func (n need) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s/s | %s | %s | %s |", number(n.rate), n.mode, number(n.app), number(n.postgres),
		number(n.databases), number(n.connections), size(n.log), size(n.logDay*gb), size(n.disk*gb), number(round(n.dollars)))
}

// round keeps two digits.
func round(n float64) float64 {
	unit := 1.0
	for n/unit >= 100 {
		unit *= 10
	}
	return unit * float64(int(n/unit+0.5))
}

// number has commas.
func number(n float64) string {
	digits := strconv.FormatFloat(n, 'f', 0, 64)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

func size(bytes float64) string {
	bytes = round(bytes)
	for _, unit := range []struct {
		name  string
		bytes float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if bytes >= unit.bytes {
			return strconv.FormatFloat(bytes/unit.bytes, 'f', -1, 64) + " " + unit.name
		}
	}
	return number(bytes) + " B"
}
