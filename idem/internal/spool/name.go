package spool

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// File is a file of records.
type File struct {
	Name    string    // in its directory
	Time    time.Time // when it was written, by the clock of this machine
	Records int       // that were written
	Size    int64
}

// How names end.
const (
	live      = ".spool"   // records that were not taken yet
	temporary = ".tmp"     // being written
	refused   = ".refused" // records that no sink takes
	damaged   = ".damaged" // some records could not be read
)

// newName is the name of a file. Names sort by time. The tag is that of a process:
// no two of them write the same name.
func newName(at int64, tag string, records int) string {
	return fmt.Sprintf("%020d-%s-%d", at, tag, records) + live
}

// parseName parses a name, if it is that of a file of records.
func parseName(name string) (f File, ok bool) {
	base, ok := strings.CutSuffix(name, live)
	parts := strings.Split(base, "-")
	if !ok || len(parts) != 3 || len(parts[0]) != 20 {
		return File{}, false
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || at < 0 || at > 1<<62 { // until the year 2116
		return File{}, false
	}
	records, err := strconv.Atoi(parts[2])
	if err != nil || records <= 0 {
		return File{}, false
	}
	return File{Name: name, Time: time.Unix(0, at), Records: records}, true
}

// refusedName returns the name of the file for n records of f that no sink takes. Under the ending of
// live files it would be one of them again.
func refusedName(f File, n int) string {
	return f.Name[:strings.LastIndexByte(f.Name, '-')+1] + strconv.Itoa(n) + refused
}
