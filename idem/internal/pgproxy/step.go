package pgproxy

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// Step is one message from the client to Postgres.
type Step struct {
	Number    int    // from 1, over all connections since Arm
	Message   string // in the words of the protocol: Parse, Bind, Execute, Sync, Query, …
	Statement string // the SQL it is about, in one line, without values; "" at the start of a connection

	// Answered: Postgres answers at once. It keeps the answers to the other
	// messages, Parse, Bind, Describe and Execute, until the next Sync.
	Answered bool
}

// String is the step for people: message 7, Execute of "insert into …".
func (s Step) String() string {
	if s.Statement == "" {
		return fmt.Sprintf("message %d, %s", s.Number, s.Message)
	}
	return fmt.Sprintf("message %d, %s of %q", s.Number, s.Message, s.Statement)
}

// messages are the names of the messages that a client sends.
var messages = map[byte]string{
	0: "StartupMessage", 'p': "PasswordMessage", 'P': "Parse", 'B': "Bind", 'D': "Describe", 'E': "Execute", 'C': "Close",
	'S': "Sync", 'H': "Flush", 'Q': "Query", 'F': "FunctionCall", 'd': "CopyData", 'c': "CopyDone", 'f': "CopyFail",
}

// statements knows which SQL the messages of one connection are about.
type statements struct {
	prepared, portals map[string]string
	last              string
}

// of returns the SQL of a message. One that names none, such as Sync, is about
// the same as the message before it.
func (s *statements) of(m message) string {
	fields := bytes.SplitN(m.body, []byte{0}, 3)
	name := func(i int) string { return string(fields[i]) }
	switch m.kind {
	case 'P':
		s.last = oneLine(name(1))
		s.prepared[name(0)] = s.last
	case 'B':
		s.last = s.prepared[name(1)]
		s.portals[name(0)] = s.last
	case 'E':
		s.last = s.portals[name(0)]
	case 'D', 'C':
		named := s.prepared
		if fields[0][0] == 'P' {
			named = s.portals
		}
		s.last = named[name(0)[1:]]
	case 'Q':
		s.last = oneLine(values.ReplaceAllString(name(0), "…"))
	}
	return s.last
}

// values are the literals that pgx writes into the text of a Query, where the extended
// protocol has $1.
var values = regexp.MustCompile(`'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b`)

// oneLine shortens SQL to its first words.
func oneLine(sql string) string {
	line := []rune(strings.Join(strings.Fields(sql), " "))
	if len(line) > 100 {
		return string(line[:100]) + "…"
	}
	return string(line)
}
