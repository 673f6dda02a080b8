package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"time"
)

//go:embed load.json
var loadJSON []byte

//go:embed log.json
var logJSON []byte

// recorded holds the recorded measurements.
type recorded struct {
	load load
	log  log
}

// load is a run of internal/bench.
type load struct {
	Machine string `json:"machine"`
	Modes   []mode `json:"modes"`
}

// mode holds the cost of an event in one of its modes.
type mode struct {
	Name     string  `json:"mode"`
	Rate     float64 `json:"events_per_second"`
	EndToEnd float64 `json:"end_to_end_per_second"` // 0 if the answer is the end
	P99      float64 `json:"p99_ms"`
	Trips    float64 `json:"round_trips_per_event"`
	Here     float64 `json:"cpu_us_per_event"` // of the load's sender, too
	Postgres float64 `json:"postgres_cpu_us_per_event"`
}

// here returns the processor time of the application.
func (m mode) here() time.Duration { return time.Duration(m.Here * float64(time.Microsecond)) }

// there returns the processor time of Postgres.
func (m mode) there() time.Duration { return time.Duration(m.Postgres * float64(time.Microsecond)) }

// log is a run of internal/capacity/log.
type log struct {
	Body     float64  `json:"body_bytes"`
	Row      float64  `json:"row_bytes"` // of an event that is done, with its indexes
	Measured []logged `json:"measured"`
}

// logged is Postgres's log of an event.
type logged struct {
	IDs   string  `json:"ids"`
	Mode  string  `json:"mode"`
	Bytes float64 `json:"bytes_per_event"` // the body included, where it is stored
}

const (
	ascending = "ascending"
	random    = "random"
)

func recordings() (r recorded, err error) {
	if err := json.Unmarshal(loadJSON, &r.load); err != nil {
		return r, fmt.Errorf("load.json: %w", err)
	}
	if err := json.Unmarshal(logJSON, &r.log); err != nil {
		return r, fmt.Errorf("log.json: %w", err)
	}
	return r, nil
}

// mode returns the recording of a mode, which is there: a test looks.
func (r recorded) mode(name string) mode {
	for _, m := range r.load.Modes {
		if m.Name == name {
			return m
		}
	}
	return mode{}
}

// beside returns the log of an event beside its body, and whether that is in the log, too.
func (r recorded) beside(mode, ids string) (bytes float64, body bool) {
	for _, l := range r.log.Measured {
		if l.Mode == mode && l.IDs == ids {
			bytes = l.Bytes
		}
	}
	if mode == "inbox" {
		return bytes - r.log.Body, true
	}
	return bytes, false
}
