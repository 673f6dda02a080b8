//go:build unix

package postgres

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that Postgres runs as.
type account struct{ uid, gid int }

// serverAccount is this process's own account, except for root, which Postgres
// refuses: then it is postgres, else nobody.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{os.Geteuid(), os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return numbers(u)
		}
	}
	return account{}, errors.New("PostgreSQL does not run as root, and there is neither an account postgres nor nobody: add one")
}

func numbers(u *user.User) (account, error) {
	uid, err := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return account{uid, gid}, errors.Join(err, err2)
}

// lend makes the command run as the account, without any of root's groups.
func lend(cmd *exec.Cmd, to account) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(to.uid), Gid: uint32(to.gid)}
	}
}

// detach gives the command a process group of its own, which Ctrl-C on the
// terminal does not reach.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGKILL) }
