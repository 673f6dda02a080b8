package postgres

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFileOfAKilledProcessDoesNotStay(t *testing.T) {
	t.Parallel()
	i := initialized{path: filepath.Join(t.TempDir(), "cache", "data.zip")}
	tmp := i.path + ".new"
	i.keep([]byte("first"))
	check(t, os.WriteFile(tmp, []byte("half"), 0o600))
	i.keep([]byte("second")) // the other process is writing it
	if got, err := os.ReadFile(i.path); err != nil || string(got) != "first" {
		t.Errorf("got %q, %v", got, err)
	}
	check(t, os.Chtimes(tmp, time.Time{}, time.Now().Add(-time.Hour)))
	i.keep([]byte("third"))
	if got, err := os.ReadFile(i.path); err != nil || string(got) != "third" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := os.Stat(tmp); !os.IsNotExist(err) {
		t.Errorf("%s: %v", tmp, err)
	}
}
