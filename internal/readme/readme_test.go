// Package readme tests what is written for people: the Go in documents compiles, the README's program runs, and
// guides do what they say. What CommonMark makes of the pages is tested by its module commonmark.
package readme

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// block is a fenced block of a document.
type block struct {
	document, language, text string
	line                     int    // of the document, where text begins
	intro                    string // the line of text before it
}

func (b block) isProgram() bool { return strings.HasPrefix(b.text, "package main\n") }

func (b block) isTest() bool { return strings.Contains(b.text, "\nfunc Test") }

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// blocks returns a document's blocks in a language. Without one the test fails.
func blocks(t *testing.T, document, language string) (found []block) {
	t.Helper()
	if found = find(t, document, language); found == nil {
		t.Fatalf("%s has no block in %s", document, language)
	}
	return found
}

// find returns a document's blocks in a language, of which there may be none.
func find(t *testing.T, document, language string) (found []block) {
	t.Helper()
	var open *block
	var intro string
	for i, line := range strings.SplitAfter(read(t, document), "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open == nil:
			open = &block{document: document, language: fence, line: i + 2, intro: intro}
		case isFence:
			if open.language == language {
				found = append(found, *open)
			}
			open = nil
		case open != nil:
			open.text += line
		case strings.TrimSpace(line) != "":
			intro = line
		}
	}
	if open != nil {
		t.Fatalf("%s has a block without end", document)
	}
	return found
}

// whole joins the lines of a shell that go on after a backslash.
func whole(text string) string { return strings.ReplaceAll(text, "\\\n", " ") }

// guide is a guide to the first event of a provider.
type guide struct {
	document string
	fake     string // the command that delivers
	secret   string // the environment variable of the fake
}

var (
	asaasGuide    = guide{"docs/first-event.md", "asaas/cmd/asaas-fake", "ASAAS_WEBHOOK_TOKEN"}
	zeltapayGuide = guide{"docs/first-event-zeltapay.md", "zeltapay/cmd/zeltapay-fake", "ZELTAPAY_WEBHOOK_SECRET"}
)

// tables returns the statements that make the tables of the README's program.
func tables(t *testing.T) string {
	t.Helper()
	return blocks(t, "README.md", "sql")[0].text
}

// program returns the README's first block of Go, which is a whole program.
func program(t *testing.T) block {
	t.Helper()
	return firstProgram(t, "README.md")
}

// byHand returns the program that is written with idem alone, and does what the README's does.
func byHand(t *testing.T) block {
	t.Helper()
	return firstProgram(t, "docs/by-hand.md")
}

func firstProgram(t *testing.T, document string) block {
	t.Helper()
	first := blocks(t, document, "go")[0]
	if !first.isProgram() {
		t.Fatalf("the first Go block of %s is not a program", document)
	}
	return first
}
