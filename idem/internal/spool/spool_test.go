package spool

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path, System{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func put(t *testing.T, d *Dir, records ...string) {
	t.Helper()
	var all [][]byte
	for _, r := range records {
		all = append(all, []byte(r))
	}
	if err := d.Put(all); err != nil {
		t.Fatal(err)
	}
}

// contents are the records of all files, in order.
func contents(t *testing.T, d *Dir) (all []string) {
	t.Helper()
	for _, f := range d.Files() {
		records, missing, err := d.Read(f)
		if missing != 0 || err != nil {
			t.Errorf("%s: %d missing, %v", f.Name, missing, err)
		}
		for _, r := range records {
			all = append(all, string(r))
		}
	}
	return all
}

func wantContents(t *testing.T, d *Dir, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, contents(t, d)); diff != "" {
		t.Error("records (-want +got):\n" + diff)
	}
}

func TestRecordsComeBackInOrderAlsoInTheNextProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "spool")
	d := open(t, path)
	put(t, d, "a", "", "b \x00\xff")
	put(t, d, "c")
	for _, d := range []*Dir{d, open(t, path)} {
		wantContents(t, d, "a", "", "b \x00\xff", "c")
		records, bytes := d.Held()
		if want := LineSize([]byte("a")) + LineSize(nil) + LineSize([]byte("b \x00\xff")) + LineSize([]byte("c")); records != 4 || bytes != want {
			t.Errorf("it holds %d records of %d bytes, want 4 of %d", records, bytes, want)
		}
	}
	if err := d.Put([][]byte{[]byte("two\nlines")}); err == nil {
		t.Error("a record with a line break was kept")
	}
	for _, f := range d.Files() {
		if err := d.Remove(f); err != nil {
			t.Error(err)
		}
		if records, missing, err := d.Read(f); len(records) != 0 || missing != 0 || err != nil {
			t.Errorf("a file that is gone has %q, %d, %v", records, missing, err)
		}
		if err := d.Remove(f); err != nil {
			t.Errorf("a file that is gone cannot be removed: %v", err)
		}
	}
	if records, bytes := d.Held(); records != 0 || bytes != 0 || !d.Empty() || !open(t, path).Empty() {
		t.Errorf("%d records of %d bytes are left", records, bytes)
	}
}

// The clock of the machine is set back while the process runs, and before it starts.
func TestOrderDoesNotDependOnTheClock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "spool")
	d := open(t, path)
	d.last = time.Now().Add(time.Hour).UnixNano()
	put(t, d, "1")
	put(t, d, "2")
	d = open(t, path)
	put(t, d, "3")
	wantContents(t, d, "1", "2", "3")
	wantContents(t, open(t, path), "1", "2", "3")
}

func TestNamesThatAreNotOfFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	names := []string{
		"lost+found", "00000000000000000001-x-1", "1-x-1.spool", "00000000000000000001-x-0.spool", "00000000000000000001-x.spool",
		"99999999999999999999-x-1.spool", "09223372036854775807-x-1.spool", "-0000000000000000001-x-1.spool", "00000000000000000001-x-1.spool.tmp",
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(path, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(path, "00000000000000000002-x-1.spool"), 0o700); err != nil {
		t.Fatal(err)
	}
	d := open(t, path)
	if files := d.Files(); len(files) > 0 {
		t.Errorf("it reads %+v", files)
	}
	put(t, d, "1")
	wantContents(t, d, "1")
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(path, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatIsSetAsideIsNotReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "spool")
	d := open(t, path)
	put(t, d, "1", "2", "3")
	f := d.Files()[0]
	for range 2 { // as after a crash in between
		name, err := d.SetAsideRefused(f, [][]byte{[]byte("2")})
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(name); err != nil || string(data) != string(appendLine(nil, []byte("2"))) {
			t.Errorf("set aside: %q, %v", data, err)
		}
	}
	if _, err := d.SetAsideDamaged(f); err != nil {
		t.Fatal(err)
	}
	d = open(t, path)
	if !d.Empty() || d.Aside() != 2 {
		t.Errorf("%+v and %d files aside, want none and 2", d.Files(), d.Aside())
	}
}

// FuzzReadLines puts bytes into a file: only lines that were written are read.
func FuzzReadLines(f *testing.F) {
	f.Add([]byte(""), 0, byte(0), 0)
	f.Add([]byte("00000000 \n"), 3, byte(1), 9)
	f.Add([]byte("ffffffff {}"), 40, byte('\n'), 7)
	f.Add(bytes.Repeat([]byte("\n"), 20), 12, byte(0xff), 25)
	records := [][]byte{[]byte(`{"id":"1"}`), []byte(`{"id":"2","payload":"AA=="}`), {}}
	var file []byte
	for _, r := range records {
		file = appendLine(file, r)
	}
	f.Fuzz(func(t *testing.T, data []byte, at int, change byte, cut int) {
		for _, record := range readLines(data) {
			if !bytes.Contains(data, record) {
				t.Errorf("a record that is not there: %q", record)
			}
		}
		at, cut = max(0, min(at, len(file))), max(0, min(cut, len(file)))
		for how, damaged := range map[string][]byte{
			"changed":  append(append(bytes.Clone(file[:at]), change), file[min(at+1, len(file)):]...),
			"inserted": append(append(bytes.Clone(file[:at]), data...), file[at:]...),
			"cut":      file[cut:],
			"cut off":  file[:cut],
		} {
			genuine := make(map[string]int)
			for _, record := range append(bytes.Split(data, []byte("\n")), records...) {
				genuine[string(record)]++
				if len(record) >= sumSize {
					genuine[string(record[sumSize:])]++ // data may have a checksum of its own
				}
			}
			for _, record := range readLines(damaged) {
				if genuine[string(record)] == 0 {
					t.Errorf("%s: a record that was not written: %q", how, record)
				}
			}
		}
	})
}

func TestNamesSortByTime(t *testing.T) {
	t.Parallel()
	a, b := newName(9, "f", 10), newName(10, "0", 1)
	if strings.Compare(a, b) >= 0 {
		t.Errorf("%s is not before %s", a, b)
	}
	for _, name := range []string{a, b} {
		if f, ok := parseName(name); !ok || newName(f.Time.UnixNano(), strings.Split(name, "-")[1], f.Records) != name {
			t.Errorf("%s is read as %+v, %v", name, f, ok)
		}
	}
	if got, want := refusedName(File{Name: a}, 3), fmt.Sprintf("%020d-f-3.refused", 9); got != want {
		t.Errorf("refused as %s, want %s", got, want)
	}
}
