package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// config is the configuration of a run.
type config struct {
	provider
	modes    []string
	length   time.Duration // of all of a mode's turns together
	events   int64         // or so many, if it is not 0
	warm     int64         // events before the first turn
	rounds   int
	rtt      time.Duration
	conns    int
	postgres string
	against  string
	token    string // for against
	ledger   string
	late     time.Duration
	json     bool

	command string // without secrets
}

// tokenVariable is the environment variable with the token of the -against URL.
const tokenVariable = "ASAAS_WEBHOOK_TOKEN"

var allModes = []string{"inline", "hand", "hand3", "ingest", "insert", "inbox", "naive"}

// parse reads the command line. It explains on stderr each argument that it refuses.
func parse(args []string, stderr io.Writer) (*config, error) {
	c := &config{provider: provider{duplicates: 0.05, concurrent: 0.01, timeout: 10 * time.Second, repeatFor: 30 * time.Second}}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	mode := f.String("mode", strings.Join(allModes, ","), "what to compare; with -against nothing else by default")
	f.IntVar(&c.at, "at", 64, "deliveries in flight at once")
	f.DurationVar(&c.length, "for", 10*time.Second, "how long each mode receives events")
	f.Int64Var(&c.events, "events", 0, "about how many events each mode receives, instead of -for")
	f.Var((*share)(&c.duplicates), "duplicates", "share of deliveries that repeat an acknowledged event")
	f.Var((*share)(&c.concurrent), "concurrent", "share of events that are delivered twice at once")
	f.DurationVar(&c.rtt, "rtt", 0, "how much longer each round trip to Postgres takes")
	f.IntVar(&c.conns, "conns", 16, "connections that each mode's pool may have")
	f.IntVar(&c.rounds, "rounds", 10, "turns of each mode")
	f.Int64Var(&c.warm, "warm", 1000, "events that each mode receives before, which do not count")
	f.StringVar(&c.postgres, "postgres", "", "connection `string` of a Postgres; by default IDEMTEST_DATABASE_URL, or a Postgres of its own")
	f.StringVar(&c.against, "against", "", "`URL` of another implementation, which expects the token in "+tokenVariable)
	f.StringVar(&c.ledger, "ledger", "", "`query` of the effects of -against: charge, number of payments, sum of cents")
	f.DurationVar(&c.late, "late", 30*time.Second, "how long the effects of -against may follow its answers")
	f.BoolVar(&c.json, "json", false, "print JSON instead of a table")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	set := make(map[string]bool)
	c.command = "bench"
	f.Visit(func(f *flag.Flag) {
		set[f.Name] = true
		c.command += " -" + f.Name + "=" + shown(f)
	})
	c.token = os.Getenv(tokenVariable)
	if c.against == "" || set["mode"] {
		c.modes = strings.Split(*mode, ",")
	}
	if c.against != "" {
		c.modes = append(c.modes, against)
	}
	err := c.check(f.Args())
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
	}
	return c, err
}

// shown is a flag's value for the report, which others will see.
func shown(f *flag.Flag) string {
	switch f.Name {
	case "postgres":
		return "…"
	case "against":
		if u, err := url.Parse(f.Value.String()); err == nil {
			return u.Host
		}
		return "…"
	}
	if value := f.Value.String(); !strings.ContainsAny(value, " \"'") {
		return value
	}
	return strconv.Quote(f.Value.String())
}

func (c *config) check(rest []string) error {
	for i, m := range c.modes {
		if m != against && !slices.Contains(allModes, m) || slices.Contains(c.modes[:i], m) || m == against && c.against == "" {
			return fmt.Errorf("-mode: %q is no mode, or there twice: name some of %s", m, strings.Join(allModes, ","))
		}
	}
	target, err := url.Parse(c.against)
	switch {
	case c.against != "" && (err != nil || target.Host == ""):
		return errors.New("-against is no URL: http://localhost:3000/webhooks/asaas is one") // which it is may be a secret
	case len(rest) > 0:
		return fmt.Errorf("%q is no flag: it takes flags only", rest[0])
	case c.at < 1 || c.conns < 1 || c.rounds < 1:
		return errors.New("-at, -conns and -rounds are at least 1")
	case c.length <= 0 || c.events < 0 || c.warm < 0 || c.rtt < 0 || c.late < 0:
		return errors.New("-for is more than 0; -events, -warm, -rtt and -late are not less")
	case c.duplicates > 0.9:
		return errors.New("-duplicates is at most 90%: the rest is what they repeat")
	case c.ledger != "" && c.against == "":
		return errors.New("-ledger is the query of -against: the others are checked without")
	case c.ledger != "" && c.postgres == "" && os.Getenv("IDEMTEST_DATABASE_URL") == "":
		return errors.New("-ledger is asked of the database of -against: name it with -postgres or IDEMTEST_DATABASE_URL")
	}
	return nil
}

// share is a flag from 0% to 100%.
type share float64

func (s *share) String() string { return fmt.Sprintf("%g%%", 100*float64(*s)) }

func (s *share) Set(text string) error {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !strings.HasSuffix(text, "%") || !(percent >= 0 && percent <= 100) {
		return errors.New("it is a share, from 0% to 100%")
	}
	*s = share(percent / 100)
	return nil
}
