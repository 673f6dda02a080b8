//go:build long

package readme

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/paghooks/paghooks/asaas"
	_ "github.com/paghooks/paghooks/asaas/charges"
	_ "github.com/paghooks/paghooks/zeltapay"
)

// surroundings is the function around a snippet. Its parameters are the names that the README's
// program has, and those of a request.
const surroundings = `func _(ctx context.Context, w http.ResponseWriter, r *http.Request, body []byte, token string,
	pool *pgxpool.Pool, tx pgx.Tx, events *asaas.Dispatcher, first *idem.Inbox, deliveries *expvar.Map,
	inbox *idem.Inbox, must func(error), webhookID string,
	tell func(context.Context, check.Result) error, paid func(context.Context, pgx.Tx, charges.Order) (int64, error)) error {`

// imports are the packages that a snippet may name.
var imports = []string{
	"context", "database/sql", "errors", "expvar", "fmt", "log", "net/http", "os", "time",
	"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgxpool",
	"github.com/paghooks/paghooks/asaas", "github.com/paghooks/paghooks/asaas/charges", "github.com/paghooks/paghooks/asaas/webhook",
	"github.com/paghooks/paghooks/idem", "github.com/paghooks/paghooks/idem/health", "github.com/paghooks/paghooks/idem/health/check", "github.com/paghooks/paghooks/idem/idemsql",
	"github.com/paghooks/paghooks/zeltapay",
}

// The others are compiled.
func TestEveryOtherGoBlockCompiles(t *testing.T) {
	t.Parallel()
	var snippets strings.Builder
	for _, b := range goBlocks(t) {
		if b.source() != "" {
			continue
		}
		if b.isProgram() {
			files := []string{lineOf(t, b) + b.text}
			if b.isTest() { // of the README's program
				files = append(files, program(t).text)
			}
			vet(t, files...)
			continue
		}
		fmt.Fprintf(&snippets, "%s\n{\n%s%s}\nreturn nil\n}\n", surroundings, lineOf(t, b), b.text)
	}
	vet(t, "package snippets\n"+importsOf(snippets.String())+snippets.String())
}

// lineOf makes the compiler speak of the document's lines.
func lineOf(t *testing.T, b block) string {
	t.Helper()
	path, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("//line %s:%d\n", filepath.Join(path, b.document), b.line)
}

func importsOf(code string) string {
	var used strings.Builder
	for _, path := range imports {
		name := filepath.Base(strings.TrimSuffix(path, "/v5"))
		if strings.Contains(code, name+".") {
			fmt.Fprintf(&used, "import %q\n", path)
		}
	}
	return used.String()
}

// vet compiles the files of a package as far as go vet does, and vets them.
func vet(t *testing.T, files ...string) {
	t.Helper()
	args := []string{"vet", "-unreachable=false"} // a snippet may return; the surroundings do so again
	folder := t.TempDir()
	for _, code := range files {
		args = append(args, write(t, folder, code))
	}
	run(t, args...)
}

func write(t *testing.T, folder, code string) (file string) {
	t.Helper()
	name := "readme.go"
	if strings.Contains(code, "\nfunc Test") {
		name = "readme_test.go"
	}
	file = filepath.Join(folder, name)
	if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// run runs a go command in this module.
func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
