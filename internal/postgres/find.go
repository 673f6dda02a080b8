package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// folders are the places in which PostgreSQL's packages put binaries that are not on PATH.
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

// IsAbsent returns true for the error of [Connect] and [Start] on a machine that has
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
