package command

import (
	"testing"

	"github.com/paghooks/paghooks/internal/lang/langtest"
)

func TestWhatEveryCommandSaysIsInBothLanguages(t *testing.T) {
	t.Parallel()
	langtest.Whole(t, portuguese)
}
