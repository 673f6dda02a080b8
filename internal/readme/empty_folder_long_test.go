//go:build long

package readme

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestTheGuideToTheFirstEventWorksInAnEmptyFolder(t *testing.T) {
	t.Parallel()
	f := asaasGuide.follow(t, program(t).text)
	page := read(t, asaasGuide.document)
	words := func(pattern string) string {
		t.Helper()
		found := regexp.MustCompile(pattern).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("%s does not say %s", asaasGuide.document, pattern)
		}
		return found[1]
	}

	// "A failure waits, and heals"
	first := regexp.MustCompile(`-id evt_first -set payment\.id=\S+ +-set payment\.externalReference=\S+`)
	f.sh(t, first.ReplaceAllString(f.deliver, words("`(-id evt_second -set [^`]+)`")))
	waitFor(t, f.log, "webhook retrying")
	if says := f.sh(t, words("\n(go run github.com/paghooks/paghooks/idem/cmd/idem list)\n")); !strings.Contains(says, "evt_second") {
		t.Errorf("idem list does not show the event:\n%s", says)
	}
	f.exec(t, words("`(insert into orders [^`]+)`"))
	late := time.After(patience)
	for paid := ""; paid != "29.90"; {
		if err := f.db.QueryRow(t.Context(), `select paid::text from orders where id = 'order-2'`).Scan(&paid); err != nil {
			t.Fatal(err)
		}
		select {
		case <-late:
			t.Fatalf("order-2 is paid with %s, the guide says 29.90", paid)
		case <-time.After(50 * time.Millisecond):
		}
	}

	// "A stranger is refused"
	if says, err := f.try(t, words("`(ASAAS_WEBHOOK_TOKEN=guessed)`")+" "+f.deliver); err == nil || !strings.HasPrefix(says, "401 ") {
		t.Errorf("the fake with a guessed token says %q, %v", says, err)
	}
	waitFor(t, f.log, "wrong_token")

	// "Your first test"
	f.write(t, "orders.sql", blocks(t, asaasGuide.document, "sql")[0].text)
	f.write(t, "main_test.go", blocks(t, asaasGuide.document, "go")[1].text)
	f.sh(t, "go mod tidy")
	if says := f.sh(t, "go test ."); !strings.HasPrefix(says, "ok") {
		t.Errorf("go test says %s", says)
	}
}

func TestTheGuideToTheFirstEventOfZeltaPayWorksInAnEmptyFolder(t *testing.T) {
	t.Parallel()
	zeltapayGuide.follow(t, read(t, zeltapayProgram))
}

// followed is a guide after its step 3.
type followed struct {
	dir     string
	env     []string
	db      *pgx.Conn
	log     *said
	deliver string // the line of the fake
}

// follow runs the lines of the guide, from a folder with its program to its first event.
func (g guide) follow(t *testing.T, program string) *followed {
	t.Helper()
	clone, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	url := idemtest.URL(t)
	f := &followed{dir: t.TempDir(), env: append(os.Environ(), "GOWORK=off", "DATABASE_URL="+url, g.secret+"="+token)}
	if f.db, err = pgx.Connect(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.db.Close(context.Background()) })
	f.exec(t, blocks(t, g.document, "sql")[0].text)

	code := strings.Replace(program, `":8080"`, `os.Getenv("ADDR")`, 1)
	f.write(t, "main.go", code)
	var ran bool
	for _, b := range blocks(t, g.document, "sh") {
		for line := range strings.Lines(whole(b.text)) {
			switch line = strings.ReplaceAll(line, "/path/to/clone", clone); {
			case strings.HasPrefix(line, "go mod "):
				f.sh(t, line)
				f.sh(t, "go mod edit -replace github.com/paghooks/paghooks="+clone) // once there are versions the guide does not say so
			case strings.HasPrefix(line, "go run ."):
				f.sh(t, "go build -o program .")
				_, addr, log := startLogged(t, filepath.Join(f.dir, "program"), url, token)
				f.log, ran = log, true
				f.deliver = "go run github.com/paghooks/paghooks/" + g.fake + " " + strings.Join(g.command(t, addr), " ")
			}
		}
	}
	if !ran {
		t.Fatalf("%s runs no program", g.document)
	}
	for _, want := range g.answers(t) {
		if got := f.sh(t, f.deliver); got != want {
			t.Errorf("the fake says %q, the guide %q", got, want)
		}
		waitFor(t, f.log, "webhook done, the first of this process")
	}
	return f
}

func (f *followed) exec(t *testing.T, statements string) {
	t.Helper()
	if _, err := f.db.Exec(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

func (f *followed) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sh runs a line in the folder, and returns its output.
func (f *followed) sh(t *testing.T, line string) string {
	t.Helper()
	out, err := f.try(t, line)
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

// try is sh for a line that may fail. Its error has what the line complained of.
func (f *followed) try(t *testing.T, line string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir, cmd.Env = f.dir, f.env
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, &complaints)
	}
	return string(out), err
}
