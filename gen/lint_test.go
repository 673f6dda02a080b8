package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each file of testdata/bad breaks the rule that its title tells; the text
// beside it is the message.
func TestBadSpecsAreRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	specs, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(specs) == 0 {
		t.Fatalf("no bad specs: %v", err)
	}
	for _, path := range specs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			err := generate(path, dir)
			if err == nil {
				t.Fatal("it was accepted")
			}
			compareWithGolden(t, strings.TrimSuffix(path, ".yaml")+".txt", err.Error()+"\n")
			if written, _ := os.ReadDir(dir); len(written) > 0 {
				t.Errorf("it was refused, and yet %s was written", written[0].Name())
			}
		})
	}
}
