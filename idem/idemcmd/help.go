package idemcmd

import (
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
)

// help prints all verbs, or all about one.
func (p *program) help(words []string) error {
	if len(words) == 0 {
		p.helpAll(p.Stdout)
		return flag.ErrHelp
	}
	v := verbNamed(words[0])
	if v == nil {
		return usage("there is no verb %q: idem help prints them", words[0])
	}
	word := v.words
	if word == "ID" {
		word = "ID..."
	}
	if word != "" && !v.needsWord {
		word = "[" + word + "]"
	}
	fmt.Fprintln(p.Stdout, strings.TrimSpace("usage: idem "+v.name+" [flags] "+word))
	fmt.Fprintf(p.Stdout, "\n%s.\n", strings.ToUpper(v.about[:1])+v.about[1:])
	if v.more != "" {
		fmt.Fprintln(p.Stdout, v.more)
	}
	fmt.Fprintln(p.Stdout, "\nFlags:")
	flags := v.flagSet(new(options))
	flags.SetOutput(p.Stdout)
	flags.PrintDefaults()
	return flag.ErrHelp
}

func (p *program) helpAll(w io.Writer) {
	fmt.Fprint(w, "usage: idem VERB [flags]\n\n")
	for _, v := range verbs {
		fmt.Fprintf(w, "  %-9s %s\n", v.name, v.about)
	}
	fmt.Fprint(w, "  help VERB all about a verb\n  version   the version of this program\n\n"+
		"The database is the one of DATABASE_URL, or of PGHOST, PGUSER and the like.\n"+
		"The exit status is 0 for success, 1 for failure, 2 for wrong usage, 3 if no event matched.\n")
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
