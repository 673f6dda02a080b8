package testkit

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// NoWarnings returns a logger with which the test fails if anything is logged as a warning or an error. Lines that
// have one of the texts in except are expected.
func NoWarnings(t testing.TB, except ...string) *slog.Logger {
	return slog.New(warnings{t, except})
}

type warnings struct {
	t      testing.TB
	except []string
}

func (warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	if !slices.ContainsFunc(w.except, func(text string) bool { return strings.Contains(line, text) }) {
		w.t.Errorf("a warning is logged: %s", line)
	}
	return nil
}

func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w warnings) WithGroup(string) slog.Handler      { return w }
