package command

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paghooks/paghooks/internal/terminal"
)

// help prints all verbs, or all about the one that the words name.
func (c *Command) help(words []string) error {
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.HasPrefix(word, "-") })
	if len(words) == 0 {
		return c.helpAll(c.Out)
	}
	v := c.verb(words[0])
	if v == nil {
		return c.noVerb(words[0])
	}
	return c.helpOn(v)
}

func (c *Command) helpAll(w io.Writer) error {
	p := c.page()
	p.line(fmt.Sprintf("usage: %s VERB [flags]", c.Name))
	p.head("Verbs:")
	var verbs [][2]string
	for _, v := range c.Verbs {
		verbs = append(verbs, [2]string{v.Name, v.About})
	}
	p.list(append(verbs, [2]string{"help VERB", "all about a verb"}, [2]string{"version", "the version of this program"}))
	p.flags("Flags of every verb, also before it:", c.flagSet(nil))
	p.variables(c.Variables)
	p.head("Exit status:")
	var statuses [][2]string
	for _, s := range Statuses {
		statuses = append(statuses, [2]string{strconv.Itoa(s.Status), s.Meaning})
	}
	p.list(statuses)
	return p.print(w)
}

func (c *Command) helpOn(v *Verb) error {
	p := c.page()
	p.line(strings.TrimSpace(fmt.Sprintf("usage: %s [flags] %s", c.Name+" "+v.Name, v.Words)))
	p.line("")
	about := v.About
	first, size := utf8.DecodeRuneInString(about)
	p.paragraph(strings.ToUpper(string(first)) + about[size:] + ".")
	if v.More != "" {
		p.line("")
		p.paragraph(v.More)
	}
	p.flags("Flags:", c.flagSet(v))
	var read []string
	for _, variable := range c.Variables {
		if name, _, _ := strings.Cut(variable, " "); slices.Contains(v.Variables, name) {
			read = append(read, variable)
		}
	}
	p.variables(read)
	return p.print(c.Out)
}

// page is a text of help.
type page struct {
	*Command
	strings.Builder
	width int
}

// widest is the longest line of help: longer ones are hard to read.
const widest = 100

func (c *Command) page() *page {
	return &page{Command: c, width: min(cmp.Or(c.Width, 80), widest)}
}

func (p *page) print(w io.Writer) error {
	_, err := io.WriteString(w, p.String())
	return err
}

func (p *page) line(text string) { p.WriteString(text + "\n") }

func (p *page) head(text string) { p.line("\n" + text) }

// paragraph prints lines of a text as one paragraph, but those that begin with two spaces, which
// stay as they are.
func (p *page) paragraph(text string) {
	var words []string
	end := func() {
		if len(words) > 0 {
			p.line(terminal.Wrap(strings.Join(words, " "), p.width, 0))
		}
		words = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || strings.HasPrefix(line, "  ") {
			end()
			p.line(line)
			continue
		}
		words = append(words, strings.Fields(line)...)
	}
	end()
}

// longLabel is the longest label that stands beside its text.
const longLabel = 22

// list prints labels and their descriptions, in two columns.
func (p *page) list(all [][2]string) {
	column := 0
	for _, line := range all {
		if size := utf8.RuneCountInString(line[0]); size <= longLabel {
			column = max(column, size)
		}
	}
	column += 4
	for _, line := range all {
		size := utf8.RuneCountInString(line[0])
		p.WriteString("  " + line[0])
		if size+4 > column {
			p.WriteString("\n" + strings.Repeat(" ", column))
		} else {
			p.WriteString(strings.Repeat(" ", column-2-size))
		}
		p.line(terminal.Wrap(line[1], p.width, column))
	}
}

func (p *page) flags(head string, set *flag.FlagSet) {
	var all [][2]string
	set.VisitAll(func(f *flag.Flag) {
		name, usage := flag.UnquoteUsage(f)
		label := strings.TrimSpace("-" + f.Name + " " + strings.ToUpper(name))
		if !slices.Contains([]string{"", "false", "0"}, f.DefValue) {
			usage += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		all = append(all, [2]string{label, usage})
	})
	if len(all) > 0 {
		p.head(head)
		p.list(all)
	}
}

func (p *page) variables(all []string) {
	if len(all) == 0 {
		return
	}
	p.head("Environment:")
	var list [][2]string
	for _, variable := range all {
		name, about, _ := strings.Cut(variable, " ")
		list = append(list, [2]string{name, about})
	}
	p.list(list)
}

func (c *Command) printVersion() error {
	_, err := fmt.Fprintln(c.Out, c.Name, version())
	return err
}

// version is that of the module, also where another program has it built in.
func version() string {
	const path = "github.com/paghooks/paghooks"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == path && m.Version != "" {
				return m.Version
			}
		}
	}
	return "(devel)"
}
