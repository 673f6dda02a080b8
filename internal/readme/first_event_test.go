//go:build long

package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// zeltapayProgram is the program of the guide of Zelta Pay.
const zeltapayProgram = "examples/zeltapay/main.go"

// command returns the arguments of the fake in a shell block of the guide, with the
// server's address.
func (g guide) command(t *testing.T, addr string) (args []string) {
	t.Helper()
	for _, b := range blocks(t, g.document, "sh") {
		if rest, ok := strings.CutPrefix(whole(b.text), "go run github.com/paghooks/paghooks/"+g.fake+" "); ok {
			return strings.Fields(strings.ReplaceAll(rest, "localhost:8080", addr))
		}
	}
	t.Fatalf("%s does not run %s", g.document, g.fake)
	return nil
}

func TestTheGuideToTheFirstEventDoesWhatItSays(t *testing.T) {
	t.Parallel()
	asaasGuide.isTrue(t, build(t))
}

func TestTheGuideToTheFirstEventOfZeltaPayDoesWhatItSays(t *testing.T) {
	t.Parallel()
	zeltapayGuide.isTrue(t, buildInto(t, t.TempDir(), block{text: read(t, zeltapayProgram)}))
}

// isTrue follows the guide, with its program.
func (g guide) isTrue(t *testing.T, binary string) {
	t.Helper()
	url := idemtest.URL(t)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	statements := blocks(t, g.document, "sql")
	if _, err := db.Exec(t.Context(), statements[0].text); err != nil {
		t.Fatal(err)
	}
	_, addr, log := startLogged(t, binary, url, token)

	fake := filepath.Join(t.TempDir(), "fake")
	run(t, "build", "-o", fake, filepath.Join(root, g.fake))
	for n, want := range g.answers(t) {
		cmd := exec.CommandContext(t.Context(), fake, g.command(t, addr)...)
		cmd.Env = append(os.Environ(), g.secret+"="+token)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("delivery %d: the fake says %q, %v; the guide %q", n+1, out, err, want)
		}
		waitFor(t, log, "webhook done, the first of this process")
	}
	ask, want, _ := strings.Cut(strings.TrimSpace(statements[1].text), "; -- ") // the row as psql prints it
	var id string
	var isPaid bool
	if err := db.QueryRow(t.Context(), ask).Scan(&id, &isPaid); err != nil || !isPaid || id+" | t" != want {
		t.Errorf("the database has %s %t, %v; the guide %q", id, isPaid, err, want)
	}
}

// answers returns what the fake prints, which is run twice.
func (g guide) answers(t *testing.T) []string {
	t.Helper()
	return slices.Collect(strings.Lines(blocks(t, g.document, "text")[0].text))
}

func TestTheProgramSaysAtTheStartThatItHasNoToken(t *testing.T) {
	t.Parallel()
	_, _, log := startLogged(t, build(t), idemtest.URL(t), "")
	waitFor(t, log, "deliveries cannot be verified, and all are answered 503: the tokens given (1) are empty")
}

// waitFor waits until a program has logged a text.
func waitFor(t *testing.T, log *said, want string) {
	t.Helper()
	late := time.After(patience)
	for !strings.Contains(log.String(), want) {
		select {
		case <-late:
			t.Fatalf("the program does not say %q, but:\n%s", want, log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
