package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// makeDir makes a folder for a cluster that belongs to the account.
func makeDir(durable bool, owner account) (string, error) {
	places := []string{memory(), os.TempDir(), "/tmp"}
	if durable {
		places = []string{os.Getenv("TMPDIR"), "/var/tmp", "/tmp"}
	}
	i := slices.IndexFunc(places, suitable)
	if i < 0 {
		return "", errors.New("no folder for a cluster: set TMPDIR to one that everyone may enter, of 60 bytes at most")
	}
	dir, err := os.MkdirTemp(places[i], "idemtest-")
	if err != nil {
		return "", fmt.Errorf("no folder for a cluster: %w", err)
	}
	if os.Geteuid() != 0 {
		return dir, nil
	}
	return dir, os.Chown(dir, owner.uid, owner.gid)
}

// suitable reports whether a cluster can be below a folder. Its path is short,
// because the path of a socket has about 100 bytes on every system.
func suitable(place string) bool {
	info, err := os.Stat(place)
	return err == nil && info.IsDir() && filepath.IsAbs(place) && len(place) <= 60 && reachable(place)
}

// environment is this process's, without variables that would change a server started
// in it. macOS needs a locale to be set.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "PG") || strings.HasPrefix(kv, "LC_")
	})
	return append(env, "LC_ALL=C")
}
