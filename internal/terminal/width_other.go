//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package terminal

import "os"

// columns returns 0: this system's terminals are not asked.
func columns(*os.File) int { return 0 }
