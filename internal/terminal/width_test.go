package terminal_test

import (
	"os"
	"testing"

	"github.com/paghooks/paghooks/internal/terminal"
)

// Not parallel: it sets the environment.
func TestWhatIsNoTerminalHasNoWidth(t *testing.T) {
	t.Setenv("COLUMNS", "40")
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, stream := range []any{file, nil, new(int)} {
		if got := terminal.Width(stream); got != 0 {
			t.Errorf("Width of %v = %d, want 0", stream, got)
		}
	}
}
