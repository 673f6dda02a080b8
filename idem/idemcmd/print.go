package idemcmd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// printLine prints a value as a line of JSON.
func (p *program) printLine(value any) error {
	return terminal.PrintJSON(p.Stdout, value)
}

// printTable prints a table. Its last column is cut off where there is no room.
func (p *program) printTable(t *terminal.Table) error {
	return t.Print(p.Stdout, p.width, longest)
}

// longest is the longest text of a column that leaves room for others.
const longest = 60

// short returns a text for a column that is not the last.
func short(text string) string { return terminal.Cut(terminal.Clean(text), longest) }

// quote makes an id fit for a shell: Asaas's have an & in them. One that would be
// taken for a flag is the value of one.
func quote(id string) string {
	if strings.HasPrefix(id, "-") {
		return "-id " + quoteText(id)
	}
	return quoteText(id)
}

func quoteText(id string) string {
	if strings.ContainsFunc(id, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@", r)
	}) {
		return "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
	}
	return id
}

// at is a time for people.
func (p *program) at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.zone).Format(time.DateTime)
}

// moment is a time in a sentence, with its zone.
func (p *program) moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.zone).Format(time.DateTime + " MST")
}

// head is the head of a column of times, with their zone.
func (p *program) head(head string) string {
	return head + " " + p.now().In(p.zone).Format("MST")
}

// age is a duration for people, in its two largest units.
func age(d time.Duration) string {
	d = max(d, 0)
	switch s := int64(d / time.Second); {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh %dm", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%dd %dh", s/86400, s/3600%24)
	}
}

// tell prints a text as a line of stderr.
func (p *program) tell(t string, args ...any) { p.say("idem: %s\n", command.Text(t, args...)) }

// events is a number of events.
func (p *program) events(n int64) string {
	if n == 1 {
		return "1 event"
	}
	return command.Text("%s events", n)
}

// sourceOf is the source's name where there are several.
func (p *program) sourceOf(o *operator.Operator) string {
	if len(p.operators) < 2 {
		return ""
	}
	return o.SourceName()
}

// isNoTable returns true for the error of Postgres that a table is missing.
func isNoTable(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "42P01"
}

// positive is a number unless that is 0.
func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
