//go:build !unix

package postgres

import (
	"os"
	"os/exec"
	"runtime"
)

type account struct{ uid, gid int }

func serverAccount() (account, error) {
	return account{}, absent("PostgreSQL: not started on " + runtime.GOOS)
}

func lend(*exec.Cmd, account) {}

func detach(*exec.Cmd) {}

func killGroup(p *os.Process) { p.Kill() }
