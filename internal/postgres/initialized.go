package postgres

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// initialized is a file in the user's cache with the data that initdb made, before
// Postgres ran on it: 30 MB. A copy takes a tenth of initdb's time. An upgrade of PostgreSQL replaces the file.
//
// The file is a zip archive, for its checksums: a damaged or half-written file counts as
// missing. Without a cache, path is "", and initdb makes each cluster.
type initialized struct {
	path string
	by   string // identifies the programs
}

// initializedBy returns the file of those programs. It may not be there yet.
func initializedBy(bin string) initialized {
	cache, err := cacheDir()
	if err != nil {
		return initialized{}
	}
	var programs strings.Builder
	programs.WriteString(watchdog) // it has initdb's options
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(bin, name))
		if err != nil {
			return initialized{}
		}
		fmt.Fprintln(&programs, info.Size(), info.ModTime().UnixNano())
	}
	return initialized{
		path: filepath.Join(cache, fmt.Sprintf("initialized-%.8x.zip", sha256.Sum256([]byte(bin+" "+runtime.GOARCH)))),
		by:   fmt.Sprintf("%x", sha256.Sum256([]byte(programs.String()))),
	}
}

// copyTo copies the data into a cluster's folder. After an error there is none.
func (i initialized) copyTo(dir string) error {
	archive, err := zip.OpenReader(i.path)
	if err != nil {
		return err
	}
	defer archive.Close()
	if archive.Comment != i.by {
		return errors.New("the data is of another version")
	}
	as, err := serverAccount()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // root follows no link that another account makes
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range archive.File {
		if err := unpack(root, f, as); err != nil {
			return errors.Join(err, root.RemoveAll("data"))
		}
	}
	return nil
}

func unpack(to *os.Root, f *zip.File, owner account) error {
	name := filepath.Clean(f.Name) // that of a folder ends with a slash
	if f.Mode().IsDir() {
		return errors.Join(to.Mkdir(name, 0o700), give(to, name, owner))
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), give(to, name, owner))
}

// give makes a file that root has made Postgres's.
func give(root *os.Root, name string, to account) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return root.Lchown(name, to.uid, to.gid)
}

// pack returns the content of the file for the data in a cluster's folder, or nil.
func (i initialized) pack(dir string) []byte {
	if i.path == "" {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.NoCompression) // a copy takes half the time
	})
	if err := errors.Join(archive.AddFS(root.FS()), archive.SetComment(i.by), archive.Close()); err != nil {
		return nil
	}
	return file.Bytes()
}

// keep writes the file, unless another process is writing it, or this one may not.
func (i initialized) keep(content []byte) {
	if content == nil || os.MkdirAll(filepath.Dir(i.path), 0o755) != nil {
		return
	}
	tmp := i.path + ".new"
	if info, err := os.Stat(tmp); err == nil && time.Since(info.ModTime()) > time.Minute {
		os.Remove(tmp) // its process was killed
	}
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, err = f.Write(content)
	if errors.Join(err, f.Close()) != nil || os.Rename(tmp, i.path) != nil {
		os.Remove(tmp)
	}
}
