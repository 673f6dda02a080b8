package console

import (
	"crypto/sha256"
	"encoding/base64"
)

// maxChosen is the number of events that one action of the page may be about. The form of so many has half
// a megabyte; proxies often take one.
const maxChosen = 50_000

// mark stands for a shown event in a form.
type mark [8]byte

func markOf(rowKey string) mark {
	sum := sha256.Sum256([]byte(rowKey))
	return mark(sum[:8])
}

// marksOf are the marks of events as a form's field has them.
func marksOf(rowKeys []string) string {
	var all []byte
	for _, key := range rowKeys {
		m := markOf(key)
		all = append(all, m[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(all)
}

// wereShown returns the events with their marks in a form, and how many events it shows.
func wereShown(rowKeys []string, field string) (again []string, shown int) {
	all, err := base64.RawURLEncoding.DecodeString(field)
	if err != nil {
		return nil, 0
	}
	marks := map[mark]bool{}
	for ; len(all) >= len(mark{}); all = all[len(mark{}):] {
		marks[mark(all[:len(mark{})])] = true
	}
	for _, key := range rowKeys {
		if marks[markOf(key)] {
			again = append(again, key)
		}
	}
	return again, len(marks)
}
