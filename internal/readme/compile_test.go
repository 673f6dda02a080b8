package readme

import (
	"path/filepath"
	"strings"
	"testing"

	// So that a change of theirs makes go test run these tests again.
	_ "github.com/paghooks/paghooks/asaas"
	_ "github.com/paghooks/paghooks/asaas/charges"
	_ "github.com/paghooks/paghooks/zeltapay"
)

func TestCodeOfADocumentThatIsOfTheRepositoryIsTheSameThere(t *testing.T) {
	t.Parallel()
	for _, b := range goBlocks(t) {
		if file := b.source(); file != "" {
			b.isPartOf(t, file)
		}
	}
}

// goBlocks returns the blocks of Go in all documents.
func goBlocks(t *testing.T) []block {
	t.Helper()
	all := blocks(t, "README.md", "go")
	for _, document := range guides(t) {
		all = append(all, find(t, document, "go")...)
	}
	return all
}

// source returns the last file that the line before a block links to, if it is Go. The block is
// a part of that file.
func (b block) source() (file string) {
	for _, to := range link.FindAllStringSubmatch(b.intro, -1) {
		if file = ""; strings.HasSuffix(strings.TrimSuffix(to[1], ".txt"), ".go") { // .txt: of a module that is not here
			file = filepath.Join(filepath.Dir(b.document), to[1])
		}
	}
	return file
}

// isPartOf checks that a file of the repository has the block, indented or not.
func (b block) isPartOf(t *testing.T, file string) {
	t.Helper()
	code := read(t, file)
	for tabs := range 4 {
		var indented strings.Builder
		for line := range strings.Lines(b.text) {
			if line != "\n" {
				indented.WriteString(strings.Repeat("\t", tabs))
			}
			indented.WriteString(line)
		}
		if strings.Contains(code, indented.String()) {
			return
		}
	}
	t.Errorf("%s:%d: %s does not have this code any more:\n%s", b.document, b.line, file, b.text)
}
