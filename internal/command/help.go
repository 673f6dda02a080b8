package command

import (
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
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
	var text strings.Builder
	fmt.Fprintf(&text, "usage: %s VERB [flags]\n", c.Name)
	var verbs, statuses []string
	for _, v := range c.Verbs {
		verbs = append(verbs, v.Name+"\t"+v.About)
	}
	for _, s := range Statuses {
		statuses = append(statuses, fmt.Sprintf("%d\t%s", s.Status, s.Meaning))
	}
	section(&text, "Verbs:", append(verbs, "help VERB\tall about a verb", "version\tthe version of this program"))
	flags(&text, "Flags of every verb, also before it:", c.flagSet(nil))
	section(&text, "Environment:", tabbed(c.Variables))
	section(&text, "Exit status:", statuses)
	_, err := io.WriteString(w, text.String())
	return err
}

func (c *Command) helpOn(v *Verb) error {
	var text strings.Builder
	first, size := utf8.DecodeRuneInString(v.About)
	fmt.Fprintf(&text, "%s\n\n%c%s.\n", strings.TrimSpace("usage: "+c.Name+" "+v.Name+" [flags] "+v.Words), unicode.ToUpper(first), v.About[size:])
	if v.More != "" {
		text.WriteString("\n" + v.More + "\n")
	}
	flags(&text, "Flags:", c.flagSet(v))
	section(&text, "Environment:", tabbed(slices.DeleteFunc(slices.Clone(c.Variables), func(variable string) bool {
		name, _, _ := strings.Cut(variable, " ")
		return !slices.Contains(v.Variables, name)
	})))
	_, err := io.WriteString(c.Out, text.String())
	return err
}

// section adds lines of two columns, which have a tab between them.
func section(text *strings.Builder, head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	columns := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(columns, "\n%s\n", head)
	for _, line := range lines {
		fmt.Fprintf(columns, "  %s\n", line)
	}
	_ = columns.Flush() // into memory
}

// tabbed has a tab follow the name of each variable.
func tabbed(variables []string) (lines []string) {
	for _, variable := range variables {
		lines = append(lines, strings.Replace(variable, " ", "\t", 1))
	}
	return lines
}

func flags(text *strings.Builder, head string, set *flag.FlagSet) {
	text.WriteString("\n" + head + "\n")
	set.SetOutput(text)
	set.PrintDefaults()
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
