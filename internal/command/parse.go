package command

import (
	"errors"
	"flag"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// parse returns the verb that is to run, and its words; no verb if there is nothing left to do.
func (c *Command) parse(args []string) (*Verb, []string, error) {
	c.json = slices.Contains(args, "-json") || slices.Contains(args, "--json") // of a command line that is not understood
	before := c.flagSet(nil)
	switch err := before.Parse(args); {
	case len(args) > 0 && isVersion(args[0]):
		return nil, nil, c.printVersion()
	case errors.Is(err, flag.ErrHelp):
		return nil, nil, c.help(before.Args())
	case err != nil:
		wrong := args[len(args)-before.NArg()-1]
		return nil, nil, Usage("the verb comes first, then %s: %s help prints the verbs", wrong, c.Name)
	case before.NArg() == 0:
		c.helpAll(c.Err)
		return nil, nil, Usage("give a verb: %s help VERB has all about one", c.Name)
	}
	leading, name, args := args[:len(args)-before.NArg()], before.Arg(0), before.Args()[1:]
	if name == "help" {
		return nil, nil, c.help(args)
	}
	v := c.verb(name)
	if v == nil {
		return nil, nil, c.noVerb(name)
	}
	words, err := c.parseVerb(v, slices.Concat(leading, args))
	if errors.Is(err, flag.ErrHelp) {
		return nil, nil, c.help([]string{name})
	}
	return v, words, err
}

func (c *Command) verb(name string) *Verb {
	for n := range c.Verbs {
		if c.Verbs[n].Name == name {
			return &c.Verbs[n]
		}
	}
	return nil
}

func (c *Command) noVerb(name string) error {
	return Usage("there is no verb %q: %s help prints them", name, c.Name)
}

// flagSet returns the flags of a verb; those of every verb for nil.
func (c *Command) flagSet(v *Verb) *flag.FlagSet {
	f := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // Run prints the error, once
	f.Usage = func() {}
	all := c.Flags
	if v != nil {
		all = slices.Concat(v.Flags, c.Flags)
	}
	for _, add := range all {
		add(f)
	}
	return f
}

func isVersion(arg string) bool {
	return slices.Contains([]string{"version", "-version", "--version"}, arg)
}

// parseVerb reads flags and words in any order.
func (c *Command) parseVerb(v *Verb, args []string) (words []string, err error) {
	c.running = c.flagSet(v)
	for len(args) > 0 {
		if err := c.running.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil, err
		} else if err != nil {
			return nil, Usage("%w: %s help %s prints the flags", err, c.Name, v.Name)
		}
		rest := c.running.Args()
		if read := len(args) - len(rest); read > 0 && args[read-1] == "--" || len(rest) == 0 {
			words = append(words, rest...)
			break
		}
		words, args = append(words, rest[0]), rest[1:]
	}
	switch most := v.most(); {
	case len(words) == 0 && v.Needs != "":
		return nil, Usage("%s needs %s", v.Name, v.Needs)
	case most >= 0 && len(words) > most:
		return nil, Usage("%q is too much: %s help %s prints what it takes", words[most], c.Name, v.Name)
	}
	return words, nil
}

// most returns the number of words that the verb takes; -1 is any number.
func (v *Verb) most() int {
	switch {
	case v.Words == "":
		return 0
	case strings.Contains(v.Words, "..."):
		return -1
	}
	return 1
}

// JSON adds the flag -json, which is also that of errors.
func (c *Command) JSON(into *bool, usage string) Flags {
	return func(f *flag.FlagSet) {
		f.BoolFunc("json", usage, func(text string) error {
			c.json = text == "true"
			*into = c.json
			return nil
		})
	}
}

// Duration returns a function that sets a flag that is a duration above zero, such as 45d or 12h.
func Duration(into *time.Duration) func(string) error {
	return func(text string) error {
		value, err := parseDuration(text)
		if err != nil || value <= 0 {
			return errors.New("it is no time such as 45d, 12h or 5s")
		}
		*into = value
		return nil
	}
}

// Time returns a function that sets a flag that is a time, or how long ago it was. A time without a zone is
// in the one that is given.
func Time(into *time.Time, zone *time.Location) func(string) error {
	return func(text string) (err error) {
		if ago, agoErr := parseDuration(text); agoErr == nil {
			*into = time.Now().Add(-ago)
			return nil
		}
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
			if *into, err = time.ParseInLocation(layout, text, zone); err == nil {
				return nil
			}
		}
		return errors.New("it is no time such as 2026-11-20T10:00:00Z or 2026-11-20, nor how long ago, such as 2h or 3d")
	}
}

func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		hours, err := time.ParseDuration(days + "h")
		if hours > math.MaxInt64/24 || hours < math.MinInt64/24 {
			return 0, errors.New("it is longer than 290 years")
		}
		return hours * 24, err
	}
	return time.ParseDuration(text)
}

// List returns a function that adds to a flag that may be repeated, or have several values with commas between.
func List(into *[]string) func(string) error {
	return func(text string) error {
		values := strings.Split(text, ",")
		if slices.Contains(values, "") {
			return errors.New("it is empty")
		}
		*into = append(*into, values...)
		return nil
	}
}

// Each returns a function that adds to a flag that may be repeated. A value may be empty, and have commas.
func Each(into *[]string) func(string) error {
	return func(text string) error { *into = append(*into, text); return nil }
}
