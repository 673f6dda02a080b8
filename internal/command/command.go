package command

import (
	"context"
	"flag"
	"io"
	"slices"

	"github.com/paghooks/paghooks/internal/lang"
	"github.com/paghooks/paghooks/internal/terminal"
)

// Command is a program of several verbs. Its streams must be set, see [Command.Use].
type Command struct {
	Name      string
	Verbs     []Verb
	Flags     []Flags  // that every verb has, and that may stand before the verb
	Variables []string // of the environment, in the order of the help: "NAME description"

	// Lang is the language of help and of questions, and Catalog holds this program's additions to
	// them in Portuguese. Errors are English in any language: programs read them.
	Lang    lang.Lang
	Catalog lang.Catalog

	// Explain returns the text of an error for a person; nil is the error's own.
	Explain func(error) string

	In       io.Reader
	Out, Err io.Writer
	Asks     bool // a person sees Err, and can answer on In
	Width    int  // of the terminal that Out is; 0 if it is none

	json    bool // as -json says
	running *flag.FlagSet
}

// Verb is one of a command's verbs.
type Verb struct {
	Name      string
	Words     string // that follow it, as in the usage: "ID", "[ID...]", "" for none
	Needs     string // the error if they are missing: "an id: status prints them"; "" where they may be
	About     string // a line
	More      string // paragraphs; lines that begin with two spaces stay as they are
	Flags     []Flags
	Variables []string // the names of those that it reads
	Run       func(ctx context.Context, words []string) error
}

// Flags adds flags to a set.
type Flags = func(*flag.FlagSet)

// Use sets the streams. A nil writer discards.
func (c *Command) Use(in io.Reader, out, err io.Writer) {
	c.In, c.Out, c.Err = in, out, err
	c.Asks, c.Width = terminal.Is(in) && terminal.Is(err), terminal.Width(out)
	for _, w := range []*io.Writer{&c.Out, &c.Err} {
		if *w == nil {
			*w = io.Discard
		}
	}
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

func (c *Command) noVerb(name string) error {
	return Usage("there is no verb %q: %s help prints them", name, c.Name)
}

func (c *Command) verb(name string) *Verb {
	for n := range c.Verbs {
		if c.Verbs[n].Name == name {
			return &c.Verbs[n]
		}
	}
	return nil
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
