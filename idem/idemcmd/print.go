package idemcmd

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/terminal"
)

// printLine prints a value as a line of JSON.
func (p *program) printLine(value any) error {
	return terminal.PrintJSON(p.Stdout, value, "")
}

// table is text in columns. Those that are empty are left out.
type table struct {
	heads []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(w io.Writer) error {
	var used []int
	for n := range t.heads {
		if slices.ContainsFunc(t.rows, func(row []string) bool { return row[n] != "" }) {
			used = append(used, n)
		}
	}
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.heads}, t.rows...) {
		var line []string
		for _, n := range used {
			line = append(line, row[n])
		}
		fmt.Fprintln(columns, strings.Join(line, "\t"))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// clean makes a text of a stranger's fit for a terminal: what would move its
// cursor is gone.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// short is clean, of a length that leaves room for other columns.
func short(text string) string {
	const longest = 60
	if text = clean(text); utf8.RuneCountInString(text) > longest {
		return string([]rune(text)[:longest-1]) + "…"
	}
	return text
}

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

// number is a number for people: 10,000.
func number[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// events is a number of events.
func events[N int | int64](n N) string {
	if n == 1 {
		return "1 event"
	}
	return number(n) + " events"
}

// sourceOf is the source's name where there are several.
func (p *program) sourceOf(o *operator.Operator) string {
	if len(p.operators) < 2 {
		return ""
	}
	return o.SourceName()
}

// isNoTable tells whether Postgres knows no table of that name.
func isNoTable(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "42P01"
}
