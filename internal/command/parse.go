package command

import (
	"errors"
	"flag"
	"slices"
	"strings"
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
