package idemcmd

import (
	"regexp"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/internal/testkit"
)

// step is a command that a person types, and all that comes of it. In out, says and effect, … stands for any text.
type step struct {
	reason string // why it is here
	types  string // what the person answers; "" is that nobody is at a terminal
	args   string // "" among them is an empty one; who it is follows them
	status int
	out    string // what is on stdout
	says   string // and on stderr, but for the database
	effect string // what is changed: events and their states, with the number of their effects; and what the trail has since

	meanwhile string // SQL, while the question stands
	before    string // SQL
}

const (
	nobody = "idem: nothing was changed: nobody is at a terminal to confirm it: give -yes, or -dry-run to look only\n"
	no     = "idem: nothing was changed: the answer was not y\n"
)

// step types a command as ana, and checks all that comes of it.
func (s *shop) step(c step) {
	s.Helper()
	if c.before != "" {
		s.exec(c.before)
	}
	changes := s.changes()
	args := strings.Fields(c.args)
	for n := range args {
		args[n] = strings.TrimSuffix(args[n], `""`)
	}
	if slices.ContainsFunc(verbs, func(v verb) bool { return v.name == args[0] && v.audited }) {
		args = append(args, "-as", "ana")
	}
	s.types = c.types
	p, out, complaints := s.program(args...)
	if typed := p.command.In; c.meanwhile != "" {
		p.command.In = readerFunc(func(b []byte) (int, error) {
			s.exec(c.meanwhile)
			return typed.Read(b)
		})
	}
	if status := p.run(s.Context()); status != c.status {
		s.Errorf("%s: idem %s: exit status %d, want %d", c.reason, c.args, status, c.status)
	}
	for of, row := range map[string]struct{ got, want string }{
		"stdout": {out.String(), c.out}, "stderr": {databaseLine.ReplaceAllString(complaints.String(), ""), c.says}, "the effect": {changes(), c.effect},
	} {
		if !isLike(row.got, row.want) {
			s.Errorf("%s: idem %s: %s is\n%s\nwant\n%s", c.reason, c.args, of, row.got, row.want)
		}
	}
}

// isLike reports whether a text is the wanted one, where … stands for any.
func isLike(text, want string) bool {
	return regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$").MatchString(text)
}

// changes returns a function that says what has changed since: events first, then what the trail has.
func (s *shop) changes() func() string {
	s.Helper()
	events, trail := s.stored()
	return func() string {
		s.Helper()
		now, said := s.stored()
		lines := said[len(trail):]
		if changed := testkit.Changed(events, now); changed != nil {
			lines = append([]string{strings.Join(changed, ", ")}, lines...)
		}
		return jsonTime.ReplaceAllString(strings.Join(lines, "; "), "2026-11-20T10:00:00Z")
	}
}

// stored returns the state of each event with the number of its effects, and the lines of the trail.
func (s *shop) stored() (events map[string]string, trail []string) {
	s.Helper()
	events = testkit.QueryOne[map[string]string](s, s.pool, `select coalesce(jsonb_object_agg(replace(e.event, 'notes//', ''), concat_ws(' ', state,
		nullif((select count(*) from effects f where f.event = substring(e.event from '[^/]*$')), 0),
		(select 'acknowledged' from idem_payloads p where p.event = e.event and acknowledged_at is not null))), '{}') from idem_events e`)
	return events, testkit.TrailLines(s, s.pool)
}
