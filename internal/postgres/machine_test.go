package postgres

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// openDir makes a folder that every account can enter, unlike t.TempDir.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "idemtest-")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	return dir
}

// script writes a program.
func script(t *testing.T, dir, name, body string) {
	t.Helper()
	// A child that is forked now would have the file open for writing until its
	// own exec, and the file could not be run ("text file busy").
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	check(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
}

// forward connects whoever comes to a socket.
func forward(from net.Listener, socket string) {
	for {
		client, err := from.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", socket)
		must(err)
		go pipe(client, server)
		go pipe(server, client)
	}
}

func pipe(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
}
