package terminal

import (
	"os"
	"strconv"
)

// Width returns how many characters a line of the terminal has that a stream is: the number in
// COLUMNS, else the terminal's own, else 80. It is 0 if the stream is no terminal: then a line
// may have any length.
func Width(stream any) int {
	if !Is(stream) {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if n := columns(stream.(*os.File)); n > 0 {
		return n
	}
	return 80
}
