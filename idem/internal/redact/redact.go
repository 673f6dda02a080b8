// Package redact takes personal data out of the texts of errors: the values that Postgres and pgx write into
// theirs, and the values that the application's own function removes.
package redact

import (
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// redacted is an error with another text, and the same error to errors.Is and errors.As.
type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.err }

// Error returns an error of the application with the text that hook, which may be nil, returns for it, and
// without the values that Postgres and pgx write into their errors.
func Error(err error, hook func(error) string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if hook != nil {
		if panicked := pgtx.Protect(func() error { text = hook(err); return nil }); panicked != nil {
			text = "the error is not shown, because RedactError panicked"
		}
	}
	if text = Text(text, err); text == err.Error() {
		return err
	}
	return &redacted{text, err}
}

// Own returns an error of a statement of this module's own without the values that Postgres writes into it, and
// without the words of a trigger that is not this module's: nobody has looked at those.
func Own(err error) error {
	if err == nil {
		return nil
	}
	text := Text(err.Error(), err)
	each(err, func(p *pgconn.PgError) {
		if p.Routine == "exec_stmt_raise" && p.Message != "" {
			text = strings.ReplaceAll(text, p.Message, "a trigger refuses it, whose message is not shown")
		}
	})
	if text == err.Error() {
		return err
	}
	return &redacted{text, err}
}

var (
	// encoding matches pgx's error for an argument that cannot be encoded, with the argument.
	encoding = regexp.MustCompile(`(?s)unable to encode .* into (\S+|unknown \(\d+\)) format for`)

	// quoted matches a value in a message of Postgres, in the quotes of its languages.
	quoted = regexp.MustCompile(`(?s)["«„“].*["»“”]`)
)

// Text returns text, the text of err, without the rows and arguments that Postgres quotes. The details of a
// Postgres error have rows and keys: pgx does not print details, an application may. Its message has a value
// if the value is at fault, in class 22.
func Text(text string, err error) string {
	each(err, func(p *pgconn.PgError) {
		for _, values := range []string{p.Detail, p.Where, p.InternalQuery} {
			if values != "" {
				text = strings.ReplaceAll(text, values, "…")
			}
		}
		if strings.HasPrefix(p.Code, "22") {
			text = strings.ReplaceAll(text, p.Message, quoted.ReplaceAllString(p.Message, `"…"`))
		}
	})
	return encoding.ReplaceAllString(text, "unable to encode … into $1 format for")
}

// each calls f for each error of Postgres in err.
func each(err error, f func(*pgconn.PgError)) {
	if p, ok := err.(*pgconn.PgError); ok { //nolint:errorlint // err is taken apart below
		f(p)
	}
	switch w := err.(type) { //nolint:errorlint // as errors.As does
	case interface{ Unwrap() error }:
		if next := w.Unwrap(); next != nil {
			each(next, f)
		}
	case interface{ Unwrap() []error }:
		for _, next := range w.Unwrap() {
			if next != nil {
				each(next, f)
			}
		}
	}
}
