package postgres

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// untar unpacks an npm package into dir/package, readable by everyone. An entry that
// would land outside of dir is an error.
func untar(tgz io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	unzipped, err := gzip.NewReader(tgz)
	if err != nil {
		return err
	}
	entries := tar.NewReader(unzipped)
	for {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return link(root)
		}
		if err == nil && entry.Typeflag == tar.TypeReg { // npm packs nothing else
			err = write(root, entry, entries)
		}
		if err != nil {
			return err
		}
	}
}

func write(root *os.Root, entry *tar.Header, content io.Reader) error {
	if !fs.ValidPath(entry.Name) {
		return fmt.Errorf("bad path %q", entry.Name)
	}
	if err := makeParents(root, entry.Name); err != nil {
		return err
	}
	// A child that is forked now would have the file open for writing until its
	// own exec, and the file could not be run ("text file busy").
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := root.Create(entry.Name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Chmod(entry.FileInfo().Mode()&0o755|0o444), f.Close())
}

// makeParents makes the folders above name, for any umask.
func makeParents(root *os.Root, name string) error {
	dir := path.Dir(name)
	if dir == "." {
		return nil
	}
	if err := makeParents(root, dir); err != nil {
		return err
	}
	switch err := root.Mkdir(dir, 0o755); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return root.Chmod(dir, 0o755)
}

// link makes the symbolic links that the package's own script would make.
func link(root *os.Root) error {
	list, err := root.ReadFile("package/native/pg-symlinks.json")
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(list, &links); err != nil {
		return err
	}
	for _, l := range links {
		to, err := filepath.Rel(path.Dir(l.Target), l.Source)
		if err != nil {
			return err
		}
		if err := root.Symlink(to, path.Join("package", l.Target)); err != nil {
			return err
		}
	}
	return nil
}
