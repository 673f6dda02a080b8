package idemrabbitmq_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/paghooks/paghooks/idem/broker/brokertest"
)

const maxMessageSize = 1 << 20

// node is a RabbitMQ on loopback, with directories, ports and an epmd of its own.
type node struct {
	dir    string
	env    []string
	server string // the program
	port   int
	epmd   *child
	broker *child
}

// findServer returns RabbitMQ's start script: Debian's /usr/sbin/rabbitmq-server runs
// the installation's only node, so its library comes first.
func findServer() (path string, err error) {
	for _, pattern := range []string{
		"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server", "/opt/rabbitmq/sbin/rabbitmq-server",
		"/opt/homebrew/opt/rabbitmq/sbin/rabbitmq-server", "/usr/local/opt/rabbitmq/sbin/rabbitmq-server",
	} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return exec.LookPath("rabbitmq-server")
}

// startNode starts a node with that time for its consumers to acknowledge.
func startNode(consumerTimeout time.Duration) (*node, error) {
	server, err := findServer()
	if err != nil {
		return nil, err
	}
	var ports [3]int // of AMQP, of Erlang, of epmd
	for i := range ports {
		if ports[i], err = brokertest.FreePort(); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "idemrabbitmq-")
	if err != nil {
		return nil, err
	}
	n := &node{dir: dir, server: server, port: ports[0]}
	config := fmt.Sprintf("listeners.tcp.default = 127.0.0.1:%d\nlog.file = false\nlog.console = true\nlog.console.level = warning\n"+
		"max_message_size = %d\nconsumer_timeout = %d\n", n.port, maxMessageSize, consumerTimeout.Milliseconds())
	if err := os.WriteFile(n.file("rabbitmq.conf"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(n.file("advanced.config"), []byte("[{rabbit,[{channel_tick_interval,500}]}]."), 0o600); err != nil {
		return nil, err
	}
	n.env = append(os.Environ(), "HOME="+dir, "RUNNING_UNDER_SYSTEMD=1", "RABBITMQ_CONF_ENV_FILE="+n.file("none"),
		fmt.Sprintf("RABBITMQ_NODENAME=test%d@localhost", n.port), "RABBITMQ_CONFIG_FILE="+n.file("rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE="+n.file("advanced.config"), "RABBITMQ_LOG_BASE="+n.file("log"), "RABBITMQ_MNESIA_BASE="+n.file("mnesia"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+n.file("plugins"), "RABBITMQ_PID_FILE="+n.file("pid"), fmt.Sprint("RABBITMQ_DIST_PORT=", ports[1]),
		fmt.Sprint("ERL_EPMD_PORT=", ports[2]), "ERL_EPMD_ADDRESS=127.0.0.1", "ERL_CRASH_DUMP=/dev/null",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}")
	if n.epmd, err = startChild(n.dir, n.env, "until rm -rf '"+n.dir+"'; do sleep 0.1; done", "epmd", "-port", fmt.Sprint(ports[2]), "-address", "127.0.0.1"); err != nil {
		return nil, err
	}
	if err := n.start(); err != nil {
		n.stop()
		return nil, err
	}
	return n, nil
}

func (n *node) file(name string) string { return filepath.Join(n.dir, name) }

func (n *node) url() string { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", n.port) }

// start starts the broker on the node's data, and waits until it serves.
func (n *node) start() (err error) {
	if n.broker, err = startChild(n.dir, n.env, "", n.server); err != nil {
		return err
	}
	return n.broker.await("completed with", 5*time.Minute)
}

// terminate has the broker end by itself.
func (n *node) terminate() {
	n.broker.signal(syscall.SIGTERM)
	for range n.broker.lines { // until it has ended
	}
	n.broker.kill()
}

func (n *node) stop() {
	if n.broker != nil {
		n.broker.kill()
	}
	n.epmd.kill() // and the directory goes
}

// restart ends the broker, and starts it again on the same data.
func (n *node) restart(t testing.TB) {
	n.terminate()
	if err := n.start(); err != nil {
		t.Fatal(err)
	}
}

func (n *node) hang(t testing.TB) (resume func()) {
	t.Helper()
	n.broker.signal(syscall.SIGSTOP)
	for state := ""; !strings.HasPrefix(state, "T"); { // until then it may answer
		out, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(n.broker.pid)).Output()
		if err != nil {
			t.Fatal("ps, which tells whether the broker has stopped: ", err)
		}
		state = string(out)
	}
	return func() { n.broker.signal(syscall.SIGCONT) }
}

// ctl runs rabbitmqctl, which takes a second or two.
func (n *node) ctl(t testing.TB, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(n.server), "rabbitmqctl"), args...)
	cmd.Env, cmd.Dir = n.env, n.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("rabbitmqctl %s: %s\n%s", strings.Join(args, " "), err, out)
	}
}

// child is a process that a shell kills when its stdin ends, and then runs last, so
// that nothing survives the tests, however those end.
type child struct {
	shell *exec.Cmd
	stdin interface{ Close() error }
	pid   int
	lines chan string
}

func startChild(dir string, env []string, last string, argv ...string) (*child, error) {
	script := `exec 3<&0; "$@" </dev/null 3<&- 2>&1 & p=$!; echo $p
		{ cat <&3; kill -0 $$ && kill -KILL $p; } >/dev/null 2>&1 &
		wait $p; ` + last
	c := &child{shell: exec.Command("sh", append([]string{"-c", script, "sh"}, argv...)...), lines: make(chan string, 1000)}
	c.shell.Env, c.shell.Dir = env, dir
	c.shell.WaitDelay = time.Second // the broker's children may hold stdout
	var err error
	if c.stdin, err = c.shell.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.shell.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.shell.Start(); err != nil {
		return nil, err
	}
	go func() {
		for s := bufio.NewScanner(stdout); s.Scan(); {
			select {
			case c.lines <- s.Text():
			default: // they are not read any more
			}
		}
		close(c.lines)
	}()
	if _, err := fmt.Sscan(<-c.lines, &c.pid); err != nil {
		return nil, fmt.Errorf("starting %s: %w", argv[0], err)
	}
	return c, nil
}

// await waits for a line that contains text.
func (c *child) await(text string, patience time.Duration) error {
	late := time.After(patience)
	var said []string
	for {
		select {
		case line, ok := <-c.lines:
			if strings.Contains(line, text) {
				return nil
			}
			if !ok {
				return fmt.Errorf("it ended: %s", strings.Join(said, "\n"))
			}
			said = append(said, line)
		case <-late:
			return fmt.Errorf("it did not say %q within %s: %s", text, patience, strings.Join(said, "\n"))
		}
	}
}

func (c *child) signal(s syscall.Signal) { _ = syscall.Kill(c.pid, s) }

func (c *child) kill() {
	c.stdin.Close()
	_ = c.shell.Wait()
}

// dial returns a Dial of the URL.
func dialer(url string) func() (*amqp.Connection, error) {
	return func() (*amqp.Connection, error) { return amqp.Dial(url) }
}
