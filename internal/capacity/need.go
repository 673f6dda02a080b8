package main

import (
	"fmt"
	"strconv"
	"time"
)

// assumptions are numbers that no machine here can show.
type assumptions struct {
	trip   time.Duration // a round trip between machines of one data center
	commit time.Duration // the disk of a cloud, and a replica next door
	body   float64       // bytes; Asaas's payments have 1.5 to 3 kB
	days   float64       // Retention
	busy   float64       // processors and connections, so that queues stay short
	cores  float64       // of the largest Postgres that one wants to run
	least  float64       // connections of a pool
}

var assumed = assumptions{trip: 500 * time.Microsecond, commit: 2 * time.Millisecond, body: 2000, days: 45, busy: 0.5, cores: 16, least: 4}

// need holds the needs of a rate.
type need struct {
	rate        float64
	mode        string
	app         float64 // processors
	postgres    float64 // processors
	databases   float64
	connections float64
	log         float64 // bytes a second
	disk        float64 // bytes, of the events that are stored
}

const day = 24 * 60 * 60

func (a assumptions) need(r recorded, mode, ids string, rate float64) need {
	m := r.mode(mode)
	n := need{rate: rate, mode: mode}
	n.app = atLeast(1, rate*m.here().Seconds()/a.busy)
	n.postgres = atLeast(1, rate*m.there().Seconds()/a.busy)
	n.databases = atLeast(1, n.postgres/a.cores)
	held := m.Trips*a.trip.Seconds() + m.there().Seconds() + a.commit.Seconds() // for which an event has a connection
	n.connections = max(a.least, atLeast(1, rate*held/a.busy))
	perEvent, withBody := r.beside(mode, ids)
	if withBody {
		perEvent += a.body
	}
	n.log = rate * perEvent
	n.disk = rate * day * a.days * r.log.Row
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

const header = `| events/s | mode | application, cores | Postgres, cores | databases | connections | log | log a day | disk for the events |
|---|---|---|---|---|---|---|---|---|`

// String is a line of the table.
func (n need) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s/s | %s | %s |", number(n.rate), n.mode, number(n.app), number(n.postgres),
		number(n.databases), number(n.connections), size(n.log), size(n.log*day), size(n.disk))
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
