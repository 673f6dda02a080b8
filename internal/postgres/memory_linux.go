package postgres

import "syscall"

// memory is a folder in memory, or "" when there is none with room for a
// cluster: containers often have 64 MB, which is too little.
func memory() string {
	const dir, room = "/dev/shm", 512 << 20
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < room {
		return ""
	}
	return dir
}
