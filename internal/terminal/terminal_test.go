package terminal_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/terminal"
)

func TestConfirmTakesOnlyAClearYes(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]struct {
		yes bool
		err error
	}{
		"y\n":       {true, nil},
		" YES \r\n": {true, nil},
		"y":         {true, nil}, // and the end of the input
		"n\n":       {false, nil},
		"\n":        {false, nil}, // the default
		"yeah\n":    {false, nil},
		"":          {false, terminal.ErrNobody},
	} {
		var out strings.Builder
		yes, err := terminal.Confirm(t.Context(), strings.NewReader(typed), &out, "Discard these 3 events?", "y", "yes")
		if yes != want.yes || !errors.Is(err, want.err) {
			t.Errorf("Confirm with %q = %t, %v, want %t, %v", typed, yes, err, want.yes, want.err)
		}
		if !strings.HasPrefix(out.String(), "Discard these 3 events? [y/N] ") {
			t.Errorf("the question is %q", out.String())
		}
	}
}

func TestConfirmEndsWithItsContext(t *testing.T) {
	t.Parallel()
	in, typist := io.Pipe() // never writes
	defer typist.Close()
	interrupted := errors.New("interrupt signal received")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted)
	if yes, err := terminal.Confirm(ctx, in, io.Discard, "Sure?", "y"); yes || !errors.Is(err, interrupted) {
		t.Errorf("Confirm = %t, %v, want %v", yes, err, interrupted)
	}
}

func TestWhatIsNoTerminalIsNot(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, stream := range map[string]any{"/dev/null": null, "a file": file, "no file": strings.NewReader(""), "nothing": nil} {
		if terminal.Is(stream) {
			t.Errorf("%s is taken for a terminal", name)
		}
	}
}
