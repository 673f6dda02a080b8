package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The clones are in two folders, and the archives the same.
func TestTheProgramsOfAVersionAreTheSameBytesTwiceAndRunWithoutGo(t *testing.T) {
	t.Parallel()
	s := snapshot(t)
	s.must(t, "tag", s.version)
	here := []platform{{runtime.GOOS, runtime.GOARCH}}
	var built [2]map[string]string
	for n := range built {
		dir := t.TempDir()
		if err := binaries(s.dir, s.version, dir, here, io.Discard); err != nil {
			t.Fatal(err)
		}
		built[n] = contents(t, dir)
	}
	for name, content := range built[0] {
		if built[1][name] != content {
			t.Errorf("%s has other bytes when it is built once more", name)
		}
	}
	archive := fmt.Sprintf("paghooks_%s_%s_%s", s.version, runtime.GOOS, runtime.GOARCH)
	file := archive + ".tar.gz"
	if want := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(built[0][file])), file); built[0]["SHA256SUMS"] != want {
		t.Errorf("SHA256SUMS has %q, want %q", built[0]["SHA256SUMS"], want)
	}

	dir := t.TempDir()
	unpack(t, built[0][file], dir)
	for _, c := range commands {
		name := path.Base(c)
		program := exec.Command(filepath.Join(dir, archive, name), "version")
		program.Env = []string{"PATH="}
		if out, err := program.CombinedOutput(); err != nil || string(out) != name+" "+s.version+"\n" {
			t.Errorf("%s says %q, %v, want its name and %s", name, out, err, s.version)
		}
	}
	notices, err := os.ReadFile(filepath.Join(dir, archive, "NOTICES"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"=== Go, BSD-3-Clause", "=== github.com/jackc/pgx/v5 v", "Permission is hereby granted"} {
		if !strings.Contains(string(notices), want) {
			t.Errorf("NOTICES lacks %q", want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, archive, "LICENSE")); err != nil {
		t.Error(err)
	}
}

func TestNoProgramsAreBuiltOfAVersionThatIsNotTagged(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.says(t, 1, []string{"there is no tag v0.1.0: release it first"}, "binaries", "v0.1.0", t.TempDir())
}

// Both forms of an archive have the same files with their modes.
func TestAnArchiveHasItsFilesAndOneTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	files := []file{{"LICENSE", 0o644, []byte("as you like")}, {"idem", 0o755, []byte("program")}}
	want := []string{"p/LICENSE -rw-r--r-- as you like", "p/idem -rwxr-xr-x program"}

	content, err := tarball("p", files, at)
	if err != nil {
		t.Fatal(err)
	}
	decompressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(decompressed); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || !h.ModTime.Equal(at) {
			t.Errorf("%s is of %s, %v", h.Name, h.ModTime, err)
		}
		got = append(got, fmt.Sprintf("%s %s %s", h.Name, h.FileInfo().Mode(), text))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tarball (-want +got):\n%s", diff)
	}
}

func TestALicenseThatIsNotKnownOrNotAcceptedIsAnError(t *testing.T) {
	t.Parallel()
	d := dependency{path: "example.com/x", version: "v1.0.0", dir: t.TempDir()}
	if _, err := d.spdx(""); err == nil || !strings.Contains(err.Error(), "has no file LICENSE") {
		t.Errorf("without a license: %v", err)
	}
	save(t, filepath.Join(d.dir, "LICENSE"), "as you like")
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("as you like")))[:16]
	for _, c := range []struct{ known, license, err string }{
		{"", "", "is new or has changed: read it"},
		{"MIT 0000000000000000 example.com/x\n", "", "is new or has changed: read it"},
		{"MIT " + sum + " example.com/y\n", "", "is new or has changed: read it"},
		{"AGPL-3.0 " + sum + " example.com/x\n", "", "has the license AGPL-3.0, which is none of"},
		{"MIT+AGPL-3.0 " + sum + " example.com/x\n", "", "has the license AGPL-3.0, which is none of"},
		{"MIT+ISC " + sum + " example.com/x\n", "MIT+ISC", ""},
	} {
		license, err := d.spdx(c.known)
		if license != c.license || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("known %q: %q, %v, want %q, %s", c.known, license, err, c.license, c.err)
		}
	}
}

// contents reads the files of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

// unpack unpacks an archive with the program tar, as a user does.
func unpack(t *testing.T, content, dir string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "archive")
	save(t, archive, content)
	if _, err := command(dir, nil, "tar", "-xf", archive); err != nil {
		t.Fatal(err)
	}
}
