package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var fenced = regexp.MustCompile("(?s)```(\\w+)\n(.*?)```")

// Its blocks are saved as they are printed, and its tests run against a real Postgres.
func TestTheGuideWorksAsPrinted(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/provider.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := inModule(t, "example.com/payments")
	names := map[string][]string{"yaml": {"acme.yaml", "acme.overlay.yaml"}, "go": {"main.go", "main_test.go"}}
	for _, block := range fenced.FindAllStringSubmatch(string(guide), -1) {
		kind := block[1]
		if len(names[kind]) == 0 {
			continue
		}
		if err := writeAll([]file{{filepath.Join(dir, names[kind][0]), []byte(block[2])}}); err != nil {
			t.Fatal(err)
		}
		names[kind] = names[kind][1:]
	}
	overlay, err := os.ReadFile(filepath.Join(dir, "acme.overlay.yaml"))
	if lines := strings.Count(string(overlay), "\n"); err != nil || lines > 15 {
		t.Errorf("the overlay has %d lines, %v", lines, err)
	}
	err = run([]string{"-spec", filepath.Join(dir, "acme.yaml"), "-overlay", filepath.Join(dir, "acme.overlay.yaml"), "-package", filepath.Join(dir, "acme")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	test := exec.CommandContext(t.Context(), "go", "test", "./...")
	test.Dir, test.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
