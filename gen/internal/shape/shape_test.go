package shape

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gen imports nothing of the root module, and the root none of gen's. What both compare bodies by is one text all the
// same.
func TestTheGeneratorComparesBodiesAsPackageDriftDoes(t *testing.T) {
	t.Parallel()
	root, err := os.ReadFile("../../../internal/shape/shape.go")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.ReadFile("shape.go")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(root), string(here)); diff != "" {
		t.Errorf("internal/shape/shape.go and gen/internal/shape/shape.go differ, change both (-root +gen):\n%s", diff)
	}
}
