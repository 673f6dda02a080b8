package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// commands are the programs for hosts without Go, which operators and developers run.
var commands = []string{"idem/cmd/idem", "asaas/cmd/asaas-queue", "asaas/cmd/asaas-fake", "zeltapay/cmd/zeltapay-fake"}

// platform is a system that programs are built for.
type platform struct{ os, arch string }

var platforms = []platform{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"windows", "amd64"},
	{"windows", "arm64"},
}

// binaries builds the commands of a version that is tagged for some platforms, from a clone, and
// writes an archive for each and SHA256SUMS into a folder. The same version, Go and platform
// make the same bytes, on every machine.
func binaries(dir, version, to string, platforms []platform, w io.Writer) error {
	r, err := open(dir)
	if err != nil {
		return err
	}
	if tag, err := r.git("tag", "--list", version); err != nil || tag == "" {
		return errors.Join(err, fmt.Errorf("there is no tag %s: release it first", version))
	}
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	clone := &repository{dir: filepath.Join(folder, "clone"), root: r.root}
	if _, err := r.git("clone", "--quiet", "--branch", version, r.dir, clone.dir); err != nil {
		return err
	}
	seconds, err := clone.git("log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, p := range platforms {
		files, err := clone.build(p, filepath.Join(folder, p.os+p.arch))
		if err != nil {
			return err
		}
		name := fmt.Sprintf("paghooks_%s_%s_%s", version, p.os, p.arch)
		content, err := tarball(name, files, time.Unix(unix, 0).UTC())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name+".tar.gz"), content, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s.tar.gz\n", sha256.Sum256(content), name)
	}
	fmt.Fprint(w, &sums)
	return os.WriteFile(filepath.Join(to, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// file is a file of an archive.
type file struct {
	name    string
	mode    os.FileMode
	content []byte
}

// build builds the commands for a platform, and returns them with the licenses.
func (r *repository) build(p platform, to string) ([]file, error) {
	env := []string{
		"GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0",
		"GOWORK=off", "GOFLAGS=", "GOEXPERIMENT=",
	}
	var packages []string
	for _, c := range commands {
		packages = append(packages, "./"+c)
	}
	// The version that a program prints is that of the tag, by -buildvcs.
	args := append([]string{"build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", to + string(filepath.Separator)}, packages...)
	if _, err := command(r.dir, env, "go", args...); err != nil {
		return nil, err
	}
	all, err := r.dependencies(r.dir, env, packages...)
	if err != nil {
		return nil, err
	}
	notices, err := noticesOf(all)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(r.dir, "LICENSE"))
	files := []file{{"LICENSE", 0o644, license}, {"NOTICES", 0o644, []byte(notices)}}
	for _, c := range commands {
		name := path.Base(c)
		if p.os == "windows" {
			name += ".exe"
		}
		content, reading := os.ReadFile(filepath.Join(to, name))
		files, err = append(files, file{name, 0o755, content}), errors.Join(err, reading)
	}
	return files, err
}

// tarball returns an archive that depends on nothing but its files and their time.
func tarball(folder string, files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	t := tar.NewWriter(compressed)
	var errs []error
	for _, f := range files {
		err := t.WriteHeader(&tar.Header{Name: folder + "/" + f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: at})
		_, writing := t.Write(f.content)
		errs = append(errs, err, writing)
	}
	errs = append(errs, t.Close(), compressed.Close())
	return b.Bytes(), errors.Join(errs...)
}
