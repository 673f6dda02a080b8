package readme

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// Two more documents print the README's program, and one its test.
func TestEveryDocumentPrintsTheSameProgram(t *testing.T) {
	t.Parallel()
	guide := blocks(t, asaasGuide.document, "go")
	for _, document := range []string{asaasGuide.document, "llms.txt"} {
		programs := blocks(t, document, "go")
		if diff := cmp.Diff(program(t).text, programs[0].text); diff != "" {
			t.Errorf("the program of %s (-README.md +%s):\n%s", document, document, diff)
		}
		if diff := cmp.Diff(guide[1].text, programs[1].text); diff != "" {
			t.Errorf("the test of %s (-%s +%s):\n%s", document, asaasGuide.document, document, diff)
		}
	}
	for document, table := range map[string]string{
		asaasGuide.document: strings.SplitAfter(blocks(t, asaasGuide.document, "sql")[0].text, ");\n")[0],
		"llms.txt":          blocks(t, "llms.txt", "sql")[0].text,
	} {
		if diff := cmp.Diff(tables(t), table); diff != "" {
			t.Errorf("the table of %s (-README.md +%s):\n%s", document, document, diff)
		}
	}
}

// goBlocks returns the blocks of Go in all documents.
func goBlocks(t *testing.T) []block {
	t.Helper()
	all := append(blocks(t, "README.md", "go"), blocks(t, "llms.txt", "go")...)
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
