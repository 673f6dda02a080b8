package spec

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/gen/internal/golden"
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
			s, err := Load(path)
			if err == nil {
				err = s.Lint()
			}
			if err == nil {
				t.Fatal("it was accepted")
			}
			golden.Compare(t, strings.TrimSuffix(path, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

// Each file of testdata/ordinary is an ordinary OpenAPI document; the text beside it
// is the advice that it gets.
func TestOrdinarySpecsAreTakenWithAdvice(t *testing.T) {
	t.Parallel()
	specs, err := filepath.Glob("testdata/ordinary/*.yaml")
	if err != nil || len(specs) == 0 {
		t.Fatalf("no ordinary specs: %v", err)
	}
	for _, path := range specs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			t.Parallel()
			s, err := Load(path)
			if err == nil {
				err = s.Lint()
			}
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, strings.TrimSuffix(path, ".yaml")+".txt", strings.Join(s.Warnings(), "\n")+"\n")
		})
	}
}
