//go:build long

package postgres

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTenStartsAtOnceOnAnEmptyCacheAllWork(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	actors := make([]*actor, 10)
	for i := range actors {
		actors[i] = m.play(t, "work")
	}
	for _, a := range actors {
		a.line(t)
		a.awaitFamily(t)
	}
	m.wantFiles(t, 1)
	calls := m.called(t)
	m.play(t, "work").line(t)
	m.wantCalls(t, calls)
}

func TestDamagedCopyIsMadeAnew(t *testing.T) {
	t.Parallel()
	for _, damage := range []struct {
		name string
		to   func(t *testing.T, file string)
	}{
		{"empty", func(t *testing.T, file string) { check(t, os.Truncate(file, 0)) }},
		{"half written", func(t *testing.T, file string) {
			info, err := os.Stat(file)
			check(t, err)
			check(t, os.Truncate(file, info.Size()/2))
		}},
		{"another byte in the middle", func(t *testing.T, file string) {
			content, err := os.ReadFile(file)
			check(t, err)
			content[len(content)/2] ^= 1
			check(t, os.WriteFile(file, content, 0o600))
		}},
		{"no data from which Postgres starts", func(t *testing.T, file string) {
			old, err := zip.OpenReader(file)
			check(t, err)
			defer old.Close()
			w, err := os.Create(file + ".whole")
			check(t, err)
			changed := zip.NewWriter(w)
			for _, f := range old.File {
				if f.Name != "data/global/pg_control" {
					check(t, changed.Copy(f))
				}
			}
			check(t, changed.SetComment(old.Comment))
			check(t, changed.Close())
			check(t, w.Close())
			check(t, os.Rename(file+".whole", file))
		}},
	} {
		t.Run(damage.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.play(t, "work").line(t)
			damage.to(t, m.wantFiles(t, 1))
			for range 2 {
				a := m.play(t, "work")
				a.line(t)
				a.awaitFamily(t)
				m.wantCalls(t, 2)
			}
			m.wantFiles(t, 1)
		})
	}
}

func TestDataIsInitializedOnceForEachVersion(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for range 2 {
		a := m.play(t, "work")
		a.line(t)
		a.awaitFamily(t)
		m.wantCalls(t, 1)
	}
	check(t, os.Chtimes(filepath.Join(m.bin, "postgres"), time.Time{}, time.Now().Add(time.Hour))) // an upgrade
	for range 2 {
		m.play(t, "work").line(t)
		m.wantCalls(t, 2)
	}
	m.wantFiles(t, 1)
}

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
