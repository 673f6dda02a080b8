package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var fenced = regexp.MustCompile("(?s)```(\\w+)\n(.*?)```")

// programOf returns the program in the README, the first block of Go with a main.
func programOf(t *testing.T, readme string) string {
	t.Helper()
	for _, block := range fenced.FindAllStringSubmatch(readme, -1) {
		if block[1] == "go" && strings.Contains(block[2], "func main()") {
			return block[2]
		}
	}
	t.Fatal("the README has no program")
	return ""
}

// followsTheGuide saves the overlay that docs/provider.md prints and the files that it links to, and runs its
// commands, in an empty module.
func followsTheGuide(t *testing.T, u user, version string) {
	text, err := os.ReadFile(filepath.Join(u.source.dir, "docs/provider.md"))
	if err != nil {
		t.Fatal(err)
	}
	guide, _, _ := strings.Cut(string(text), "## 6.")
	for _, name := range []string{"acme.yaml", "main.go.txt", "main_test.go.txt"} {
		linked, err := os.ReadFile(filepath.Join(u.source.dir, "gen/testdata/guide", name))
		if err != nil {
			t.Fatal(err)
		}
		u.write(strings.TrimSuffix(name, ".txt"), string(linked))
	}
	var commands []string
	for _, block := range fenced.FindAllStringSubmatch(guide, -1) {
		kind, text := block[1], block[2]
		if kind == "yaml" {
			u.write("acme.overlay.yaml", text)
		}
		for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
			if command, ok := strings.CutPrefix(strings.TrimSpace(line), "go "); ok && kind == "sh" {
				commands = append(commands, strings.ReplaceAll(command, "@latest", "@"+version))
			}
		}
	}
	if len(commands) != 4 {
		t.Fatalf("the guide has the commands %q", commands)
	}
	for _, command := range append(commands, "vet ./...", "test ./...") {
		u.does(strings.Fields(command)...)
	}
}
