package spool

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumSize is the length of the prefix of a record in its line: its checksum in
// hexadecimal digits, and a space.
const sumSize = 9

// LineSize is the number of bytes that a record takes in a file.
func LineSize(record []byte) int64 { return int64(sumSize + len(record) + 1) }

// appendLine appends the line of a record, which must not contain a line break.
func appendLine(to, record []byte) []byte {
	to = fmt.Appendf(to, "%08x ", crc32.Checksum(record, castagnoli))
	to = append(to, record...)
	return append(to, '\n')
}

// readLines returns the records of whole lines, in order.
func readLines(data []byte) (records [][]byte) {
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if record, ok := readLine(line); ok {
			records = append(records, record)
		}
	}
	return records
}

func readLine(line []byte) (record []byte, ok bool) {
	if len(line) < sumSize || line[sumSize-1] != ' ' {
		return nil, false
	}
	sum, err := strconv.ParseUint(string(line[:sumSize-1]), 16, 32)
	record = line[sumSize:]
	return record, err == nil && uint32(sum) == crc32.Checksum(record, castagnoli)
}
