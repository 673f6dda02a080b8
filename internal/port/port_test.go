package port

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestAFreePortIsNoneThatConnectionsTake(t *testing.T) {
	t.Parallel()
	lowest := 49152
	if said, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil { // Linux
		low, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\t")
		if lowest, err = strconv.Atoi(low); err != nil {
			t.Fatal(err)
		}
	}
	port, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	if port >= lowest {
		t.Errorf("port %d is one of those that connections take, from %d", port, lowest)
	}
	l, err := net.Listen("tcp", Address(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
