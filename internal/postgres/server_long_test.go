//go:build long

package postgres

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestDatabaseOfTheEnvironmentComesFirstAndKeepsNothing(t *testing.T) {
	t.Parallel()
	c := started(t, new(Cluster))
	for _, test := range []struct {
		why   string
		given bool
		env   []string
	}{
		{"the database for tests", true, []string{"IDEMTEST_DATABASE_URL=" + c.URL()}},
		{"the one of the application is not looked at", true, []string{"DATABASE_URL=postgres://127.0.0.1:1/shop", "IDEMTEST_DATABASE_URL=" + c.URL()}},
		{"nor without one for tests", false, []string{"DATABASE_URL=" + c.URL(), "IDEMTEST_DATABASE_URL="}},
	} {
		a := play(t, "work", append(test.env, "IDEMTEST_BARE=1")...)
		if got := a.line(t); strings.HasSuffix(got, " at IDEMTEST_DATABASE_URL") != test.given {
			t.Errorf("%s: started %s", test.why, got)
		}
		a.awaitFamily(t)
	}

	wantOnly(t, c, "database postgres", "schema public")
}

func TestDockerIsTheLastResort(t *testing.T) {
	t.Parallel()
	for _, leave := range []string{"", "without closing"} {
		t.Run("leaves "+leave, func(t *testing.T) {
			t.Parallel()
			bin := openDir(t)
			script(t, bin, "docker", fmt.Sprintf(`PATH='%s' IDEMTEST_ACT=docker IDEMTEST_BARE= IDEMTEST_STATE='%s' exec '%s' "$@"`,
				os.Getenv("PATH"), t.TempDir(), self(t)))
			a := play(t, "work", "PATH="+bin, "IDEMTEST_BARE=1", "IDEMTEST_LEAVE="+leave)
			if got := a.line(t); !strings.HasSuffix(got, " from Docker's postgres:17-alpine") {
				t.Errorf("started %s", got)
			}
			a.awaitFamily(t)
		})
	}
}
