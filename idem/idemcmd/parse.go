package idemcmd

import (
	"errors"
	"flag"
	"fmt"
	"strings"
)

// parse reads the command line, flags and other words in any order.
func (p *program) parse(args []string) (*verb, error) {
	if len(args) == 0 {
		p.helpAll(p.Stderr)
		return nil, usage("give a verb: stats shows how things are")
	}
	name, args := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		return nil, p.help(args)
	case "version", "-version", "--version":
		fmt.Fprintln(p.Stdout, "idem", version())
		return nil, flag.ErrHelp
	}
	v := verbNamed(name)
	switch {
	case v == nil && strings.HasPrefix(name, "-"):
		return nil, usage("the verb comes first, then %s: idem help prints the verbs", name)
	case v == nil:
		return nil, usage("there is no verb %q: idem help prints them", name)
	}
	flags := v.flagSet(&p.options)
	for {
		err := flags.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			return nil, p.help([]string{name})
		}
		if err != nil {
			return nil, usage("%w: idem help %s prints the flags", err, name)
		}
		if flags.NArg() == 0 {
			break
		}
		p.words, args = append(p.words, flags.Arg(0)), flags.Args()[1:]
	}
	switch {
	case v.words == "" && len(p.words) > 0:
		return nil, usage("%q is too much: idem help %s prints what it takes", p.words[0], name)
	case v.needsWord && len(p.words) == 0:
		return nil, usage("%s what? give an %s", name, v.words)
	}
	return v, v.check(p)
}
