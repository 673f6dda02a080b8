//go:build long

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Its overlay is saved as it is printed, beside the files that it links to, and its tests run against a real Postgres.
func TestTheGuideWorksAsPrinted(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/provider.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := inModule(t, "example.com/payments")
	for _, name := range []string{"acme.yaml", "main.go.txt", "main_test.go.txt"} { // .txt, because it is of another module
		content, err := os.ReadFile(filepath.Join("testdata/guide", name))
		if err == nil {
			err = writeAll([]file{{filepath.Join(dir, strings.TrimSuffix(name, ".txt")), content}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	overlay := fenced.FindStringSubmatch(string(guide))[1]
	if err := writeAll([]file{{filepath.Join(dir, "acme.overlay.yaml"), []byte(overlay)}}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(overlay, "\n"); lines > 15 {
		t.Errorf("the overlay has %d lines", lines)
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
