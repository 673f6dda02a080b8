package browser

import (
	"archive/tar"
	"compress/gzip"
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
)

const (
	npmPackage   = "@sparticuz/chromium@153.0.0"
	npmIntegrity = "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==" // npm view … dist.integrity
)

// chromium returns the path of a Chromium.
func chromium(ctx context.Context) (string, error) {
	if path := os.Getenv("CHROME_PATH"); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	for _, path := range []string{"/usr/lib/chromium/chromium", "/opt/google/chrome/chrome", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	path, err := fetched(ctx)
	if err != nil {
		return "", fmt.Errorf("no Chromium for these tests: install it (Debian: apt-get install chromium), or set CHROME_PATH to one; npm: %w", err)
	}
	return path, nil
}

// fetched returns npm's Chromium, which is fetched and unpacked the first time.
func fetched(ctx context.Context) (string, error) {
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		return "", errors.New("it has none for this platform")
	}
	return cached(ctx, npmFile{
		name: npmPackage, integrity: npmIntegrity, size: "70 MB", entry: "package/bin/chromium.br", as: "chromium-153.0.0",
		unpack: `const fs = require("fs"); require("stream/promises").pipeline(fs.createReadStream("entry"),
			require("zlib").createBrotliDecompress(), fs.createWriteStream("unpacked", {mode: 0o755}))`,
	})
}

// npmFile is a file of a package of npm's.
type npmFile struct {
	name, integrity, size string // of the package
	entry                 string // the file's name in it
	as                    string // its name in the user's cache folder
	unpack                string // a program of Node.js that makes the file "unpacked" of "entry"; "" if it is as it is
}

// cached returns the path of a file, which is fetched the first time.
func cached(ctx context.Context, f npmFile) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "paghooks")
	path := filepath.Join(cache, f.as)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(cache, "unpacking-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	fmt.Fprintf(os.Stderr, "fetching %s once (npm, %s)\n", f.name, f.size)
	if err := run(ctx, tmp, "npm", "pack", "--ignore-scripts", "--loglevel=error", f.name); err != nil {
		return "", err
	}
	if err := f.take(tmp); err != nil {
		return "", err
	}
	made := "entry"
	if f.unpack != "" {
		made = "unpacked"
		if err := run(ctx, tmp, "node", "-e", f.unpack); err != nil {
			return "", err
		}
	}
	return path, os.Rename(filepath.Join(tmp, made), path) // whole or not at all
}

// take writes the file of the package in dir to the file "entry".
func (f npmFile) take(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("npm pack made %d files, %v", len(files), err)
	}
	packed, err := os.Open(files[0])
	if err != nil {
		return err
	}
	defer packed.Close()
	sum := sha512.New()
	unzipped, err := gzip.NewReader(io.TeeReader(packed, sum))
	if err != nil {
		return err
	}
	for entries := tar.NewReader(unzipped); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if entry.Name == f.entry {
			if err := write(filepath.Join(dir, "entry"), entries); err != nil {
				return err
			}
		}
	}
	if _, err := io.Copy(sum, packed); err != nil {
		return err
	}
	if got := base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != f.integrity {
		return fmt.Errorf("%s is not the one that was pinned: its hash is %s: do not use it, and report this", f.name, got)
	}
	return nil
}

func write(path string, content io.Reader) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %.500s", name, args[0], err, out)
	}
	return nil
}
