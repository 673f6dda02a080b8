//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// postgresTime returns the processor time of the processes of a Postgres on this machine,
// those that have ended included.
func postgresTime(postmaster int) time.Duration {
	if postmaster == 0 {
		return 0
	}
	total := processOf(strconv.Itoa(postmaster)).ended
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, entry := range entries {
		if processOf(filepath.Base(entry)).parent != postmaster {
			continue
		}
		var ns int64
		if text, err := os.ReadFile(filepath.Join(entry, "schedstat")); err == nil {
			_, _ = fmt.Sscan(string(text), &ns)
		}
		total += time.Duration(ns)
	}
	return total
}

// parentOfPostgres returns the parent of a Postgres's process, which is the parent of all
// of them; 0 if it is not on this machine.
func parentOfPostgres(pid uint32) int {
	p := processOf(strconv.FormatUint(uint64(pid), 10))
	if p.name != "postgres" {
		return 0
	}
	return p.parent
}

// process is a process as /proc/…/stat describes it.
type process struct {
	name   string
	parent int
	ended  time.Duration // of its children that have ended
}

// tick is the unit of /proc/…/stat.
const tick = 10 * time.Millisecond

func processOf(pid string) (p process) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return p
	}
	head, tail, _ := strings.Cut(string(text), ") ") // pid (name) state parent …
	_, p.name, _ = strings.Cut(head, "(")
	fields := strings.Fields(tail)
	if len(fields) < 15 {
		return p
	}
	p.parent, _ = strconv.Atoi(fields[1])
	user, _ := strconv.Atoi(fields[13])
	system, _ := strconv.Atoi(fields[14])
	p.ended = time.Duration(user+system) * tick
	return p
}
