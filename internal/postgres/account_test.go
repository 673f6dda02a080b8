//go:build long && unix

package postgres

import (
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// As root, this runs a test as nobody; as anyone else, it runs it as oneself.
// The other tests show what root can do, when root runs them.
func TestAnUnprivilegedUserCanStartPostgres(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(openDir(t), "postgres.test") // go test's own folder is closed to others
	copyFile(t, binary, self(t))
	cache := openDir(t)
	cmd := exec.Command(binary, "-test.v", "-test.run=^(TestDurableWaitsForTheDisk|TestCommitsOutliveACrash)$")
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "IDEMTEST_CACHE=" + cache}
	if os.Geteuid() == 0 {
		u, err := user.Lookup("nobody")
		check(t, err)
		nobody, err := numbers(u)
		check(t, err)
		check(t, os.Chown(cache, nobody.uid, nobody.gid))
		detach(cmd)
		lend(cmd, nobody)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v:\n%s", err, out)
	}
	if kept, err := os.ReadDir(cache); err != nil || len(kept) != 1 {
		t.Errorf("its cache has %v, %v, want its initialized data", kept, err)
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	source, err := os.Open(from)
	check(t, err)
	defer source.Close()
	// A child that is forked now would have the file open for writing until its
	// own exec, and the file could not be run ("text file busy").
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	check(t, err)
	_, err = io.Copy(f, source)
	check(t, err)
	check(t, f.Close())
}

func TestRootLendsPostgresNoneOfItsGroups(t *testing.T) {
	t.Parallel()
	as, err := serverAccount()
	check(t, err)
	if as.uid == 0 {
		t.Error("Postgres would run as root")
	}
	cmd := exec.Command("true")
	detach(cmd)
	lend(cmd, as)
	if c := cmd.SysProcAttr.Credential; c != nil && (len(c.Groups) > 0 || c.NoSetGroups) {
		t.Errorf("groups: %+v", c)
	}
}
