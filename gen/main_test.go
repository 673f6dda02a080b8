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
		{nil, "usage: go run github.com/paghooks/paghooks/gen@VERSION -spec ", "no command"},
		{[]string{"-spec", "spec.yaml"}, "usage: go run github.com/paghooks/paghooks/gen@VERSION -spec ", "no directory"},
		{[]string{"generat"}, "usage: go run github.com/paghooks/paghooks/gen@VERSION -spec ", "a typing error"},
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
	module := t.TempDir()
	if err := write(file{filepath.Join(module, "go.mod"), []byte("module example.com/shop\n")}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(module, "minimal")
	if err := run([]string{"-spec", "testdata/good/minimal/spec.yaml", "-package", dir}, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"types.gen.go", "events.gen.go", "provider.gen.go", "minimaltest/fixtures.gen.json"} {
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

func TestWhatCannotBeComparedSaysWhy(t *testing.T) {
	t.Parallel()
	const driftSpec = "drift/testdata/spec.yaml"
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "overlay: 1.0.0\ninfo: {title: x, version: '1'}\nactions:\n"
	for _, tt := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"no bodies", []string{"drift"}, "usage:"},
		{"an unknown flag", []string{"drift", "-x", "y"}, "usage:"},
		{"no such body", []string{"drift", "-spec", driftSpec, "nowhere.json"}, "cannot read the bodies"},
		{"no JSON", []string{"drift", "-spec", driftSpec, file("a.json", `{"id":`)}, "is not JSON"},
		{"no such overlay", []string{"drift", "-spec", driftSpec, "-overlay", "nowhere.yaml", "x"}, "cannot read the overlay"},
		{"no YAML", []string{"drift", "-spec", driftSpec, "-overlay", file("a.yaml", "\t"), "x"}, "is not YAML"},
		{"no overlay", []string{"drift", "-spec", driftSpec, "-overlay", file("b.yaml", "openapi: 3.1.0"), "x"}, "is not an OpenAPI overlay"},
		{"a target that does not exist", []string{"drift", "-spec", driftSpec, "-overlay", file("c.yaml", head+"- {target: $.nothing, update: {a: b}}"), "x"}, "does not fit the spec"},
		{"no such spec", []string{"drift", "-spec", "nowhere.yaml", "x"}, "cannot read the spec"},
		{"what the linter refuses", []string{"drift", "-spec", "spec/testdata/bad/no-post.yaml", "x"}, "correct the spec first"},
	} {
		if err := run(tt.args, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.reason, err, tt.want)
		}
	}
}

func TestDriftIsAnError(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	err := run([]string{"drift", "-spec", "drift/testdata/spec.yaml", "drift/testdata/new.jsonl"}, &table)
	if err == nil || !strings.Contains(err.Error(), "22 differences") || !strings.Contains(table.String(), "unknown_event") {
		t.Errorf("got %v and the table\n%s", err, table.String())
	}
	if err := run([]string{"drift", "-spec", "drift/testdata/spec.yaml", "drift/testdata/known.jsonl"}, io.Discard); err != nil {
		t.Error(err)
	}
}
