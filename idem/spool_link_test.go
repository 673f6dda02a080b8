package idem_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The example inbox receives with an inbox, and opens no spool.
func TestAProgramWithoutASpoolLinksNone(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "inbox.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../examples/inbox").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	symbols, err := exec.CommandContext(t.Context(), "go", "tool", "nm", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(symbols), "idem.(*Inbox).storeOrSpool") {
		t.Error("the program has no inbox: this test looks at nothing")
	}
	for line := range strings.Lines(string(symbols)) {
		if strings.Contains(line, "idem/internal/spool.(*") || strings.Contains(line, "idem/internal/spool.NewKeeper") {
			t.Errorf("it links %s", strings.TrimSpace(line))
		}
	}
}
