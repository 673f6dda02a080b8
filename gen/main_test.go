package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/gen/internal/golden"
)

func TestWrongCommandLinesSayWhatIsRight(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		want string
		why  string
	}{
		{nil, "usage: go run github.com/paghooks/paghooks/gen -spec ", "no command"},
		{[]string{"-spec", "spec.yaml"}, "usage: go run github.com/paghooks/paghooks/gen -spec ", "no directory"},
		{[]string{"generat"}, `there is no command "generat"`, "a typing error"},
		{[]string{"-spec", "nowhere.yaml", "-package", "."}, "gen: cannot read the spec, check its path: open nowhere.yaml", "no such file"},
	}
	for _, test := range tests {
		if err := run(test.args, io.Discard); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got the error %v, want %q", test.why, err, test.want)
		}
	}
}

func TestARefusedSpecWritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := run([]string{"-spec", "spec/testdata/bad/many.yaml", "-package", filepath.Join(dir, "shop")}, io.Discard); err == nil {
		t.Error("it was accepted")
	}
	if written, _ := os.ReadDir(dir); len(written) > 0 {
		t.Errorf("it was refused, and yet %s was written", written[0].Name())
	}
}

func TestGenerateWritesAllFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "minimal")
	if err := run([]string{"-spec", "testdata/good/minimal/spec.yaml", "-package", dir}, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"types.gen.go", "events.gen.go", "minimaltest/fixtures.gen.json"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, filepath.Join("testdata/good/minimal", filepath.Base(name)+".golden"), string(got))
	}
}

func TestFilesThatAreRightAreLeftAlone(t *testing.T) {
	t.Parallel()
	f := file{path: filepath.Join(t.TempDir(), "a.go"), content: []byte("package a\n")}
	if err := write(f); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(f.path, old, old); err != nil {
		t.Fatal(err)
	}
	if err := write(f); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.path); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the file was written again: %v, %v", info, err)
	}
	f.content = []byte("package b\n")
	if err := write(f); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(f.path); string(got) != "package b\n" {
		t.Errorf("the file has %q, want the new content", got)
	}
}

func TestWhatIsInTheWayOfThePackageIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "shop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := write(file{path: filepath.Join(dir, "shop", "a.go")})
	if err == nil || !strings.Contains(err.Error(), "see what is in the way") {
		t.Errorf("got the error %v, want advice", err)
	}
}
