//go:build long

package readme

import (
	"context"
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

	// "Then break something": the words of step 3.
	other := regexp.MustCompile("`(-id evt_second -set [^`]+)`").FindStringSubmatch(read(t, asaasGuide.document))
	list := regexp.MustCompile("`(go run github.com/paghooks/paghooks/idem/cmd/idem list)`").FindString(read(t, asaasGuide.document))
	if other == nil || list == "" {
		t.Fatal("the guide breaks nothing")
	}
	f.exec(t, `alter table orders rename to mislaid`)
	f.sh(t, strings.Replace(f.deliver, "-id evt_first", other[1], 1))
	waitFor(t, f.log, "webhook retrying")
	if says := f.sh(t, strings.Trim(list, "`")); !strings.Contains(says, "evt_second") {
		t.Errorf("idem list does not show the event:\n%s", says)
	}
	f.exec(t, `alter table mislaid rename to orders`)
	late := time.After(patience)
	for paid := ""; paid != "59.80"; {
		if err := f.db.QueryRow(t.Context(), `select paid::text from orders`).Scan(&paid); err != nil {
			t.Fatal(err)
		}
		select {
		case <-late:
			t.Fatalf("the order is paid with %s, the guide says 59.80", paid)
		case <-time.After(50 * time.Millisecond):
		}
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
	if err := os.WriteFile(filepath.Join(f.dir, "main.go"), []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
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

// sh runs a line in the folder, and returns its output.
func (f *followed) sh(t *testing.T, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir, cmd.Env = f.dir, f.env
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", line, err, out, complaints.String())
	}
	return string(out)
}
