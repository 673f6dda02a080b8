package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVersionsAreComparedByNumber(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"debian/9/bin", "debian/15/bin", "debian/main/bin", "pgsql-9.6/bin", "pgsql-9.10/bin", "opt/postgresql@17/bin"} {
		check(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	found := installed([]string{root + "/debian/*/bin", root + "/pgsql-*/bin", root + "/opt/postgresql@*/bin", root + "/none/*/bin"})
	var got []string
	for _, dir := range found {
		got = append(got, strings.TrimPrefix(dir, root+"/"))
	}
	want := []string{"opt/postgresql@17/bin", "debian/15/bin", "pgsql-9.10/bin", "pgsql-9.6/bin", "debian/9/bin", "debian/main/bin"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestBinariesOnPathAreFoundAtTheirRealPath(t *testing.T) {
	real, links := openDir(t), openDir(t)
	for _, name := range []string{"initdb", "postgres"} {
		script(t, real, name, "")
	}
	check(t, os.Symlink(filepath.Join(real, "initdb"), filepath.Join(links, "initdb")))
	t.Setenv("PATH", links)
	got, err := binaries(t.Context())
	if err != nil || got != real {
		t.Errorf("got %s, %v, want %s", got, err, real)
	}
}

func TestOnlyUsableBinariesCount(t *testing.T) {
	t.Parallel()
	whole, half, plain := openDir(t), openDir(t), openDir(t)
	for _, name := range []string{"initdb", "postgres"} {
		script(t, whole, name, "")
		check(t, os.WriteFile(filepath.Join(plain, name), nil, 0o644))
	}
	script(t, half, "initdb", "")
	for _, test := range []struct {
		dir, why string
		want     bool
	}{
		{whole, "has both", true},
		{half, "has no postgres: a client package", false},
		{plain, "they are not executable", false},
		{filepath.Join(whole, "none"), "there is no such folder", false},
		{"", "this way found nothing", false},
	} {
		if got := complete(test.dir); got != test.want {
			t.Errorf("complete = %t, but it %s", got, test.why)
		}
	}
}

func TestAClosedFolderIsNotReachableForRootsDelegate(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	inner := filepath.Join(dir, "closed", "bin")
	check(t, os.MkdirAll(inner, 0o755))
	check(t, os.Chmod(filepath.Dir(inner), 0o700))
	if got, own := reachable(inner), os.Geteuid() != 0; got != own {
		t.Errorf("reachable = %t, and it is one's own = %t", got, own)
	}
	if !reachable(dir) {
		t.Error("an open folder is not reachable")
	}
}
