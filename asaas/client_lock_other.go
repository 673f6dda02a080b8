//go:build !unix || solaris || illumos || aix

package asaas

import (
	"context"
	"os"
)

// lock does nothing: of two processes at the same moment, both may go on.
func lock(context.Context, *os.File) error { return nil }
