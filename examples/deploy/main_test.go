//go:build long

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/port"
)

const token = "the-token-of-the-deployed-shop-of-the-test"

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// build runs the builds of the Dockerfile, here instead of in its image.
func build(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	file := strings.ReplaceAll(read(t, "Dockerfile"), "\\\n", "")
	builds := regexp.MustCompile(`(?m)^RUN (.*go build.*)$`).FindAllStringSubmatch(file, -1)
	if len(builds) != 2 {
		t.Fatalf("the Dockerfile has %d builds", len(builds))
	}
	for _, b := range builds {
		line := strings.ReplaceAll(b[1], "/out/", folder+"/")
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	return folder
}

func TestTheProgramIsBuiltMigratesReceivesAndStops(t *testing.T) {
	t.Parallel()
	folder := build(t)
	n, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	address, database := fmt.Sprintf("http://127.0.0.1:%d", n), idemtest.URL(t)
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(folder, "shop"), args...)
		cmd.Env = append(os.Environ(), "DATABASE_URL="+database, "ASAAS_WEBHOOK_TOKEN="+token, fmt.Sprint("PORT=", n))
		return cmd
	}
	for range 2 { // each release runs it
		if out, err := command("migrate").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `insert into orders (id) values ('order-1')`); err != nil {
		t.Fatal(err)
	}

	shop := command()
	var log bytes.Buffer
	shop.Stderr = &log
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shop.Process.Kill() }()
	get := func(path string) int {
		answer, err := http.Get(address + path)
		if err != nil {
			return 0
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	until(t, "it is up", func() bool { return get("/up") == http.StatusOK })
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	charge.Now = time.Now().In(asaas.Brasilia())
	charge.Payment.DateCreated, charge.Payment.ExternalReference = asaas.Date(charge.Now.Format(time.DateOnly)), value.Of("order-1")
	charge.Created()
	r := asaastest.Request(address+"/webhooks/asaas", token, charge.Received())
	r.RequestURI = ""
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	until(t, "the order is paid", func() bool {
		var paid asaas.Money
		err := conn.QueryRow(t.Context(), `select paid from orders`).Scan(&paid)
		return err == nil && paid == asaas.Cents(10000)
	})
	// A parked event is a reason for an alert, and none to restart the program or to take it out of service.
	if _, err := conn.Exec(t.Context(), `drop table orders`); err != nil {
		t.Fatal(err)
	}
	if health, up := get("/health/webhooks"), get("/up"); health != http.StatusOK || up != http.StatusOK {
		t.Errorf("health is answered %d, and the probe %d", health, up)
	}

	began := time.Now()
	if err := shop.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := shop.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, log.String())
	}
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("it took %s to end", took)
	}
	for _, name := range []string{"idem", "asaas-queue"} {
		if out, err := exec.Command(filepath.Join(folder, name), "version").CombinedOutput(); err != nil {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
	if runtime.GOOS == "linux" { // distroless/static has no libraries
		if out, _ := exec.Command("ldd", filepath.Join(folder, "shop")).CombinedOutput(); !bytes.Contains(out, []byte("not a dynamic executable")) && len(out) > 0 && !bytes.Contains(out, []byte("statically")) {
			t.Errorf("the program needs libraries: %s", out)
		}
	}
}

func TestThePageHasTheFiles(t *testing.T) {
	t.Parallel()
	page := read(t, "../../docs/deploy.md")
	for _, file := range []string{"Dockerfile", "shop.service", "fly.toml", "cloudrun.sh"} {
		if !strings.Contains(page, "\n"+read(t, file)+"```") {
			t.Errorf("docs/deploy.md has another %s", file)
		}
	}
}

// until waits for something that the program does.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for !is() {
		select {
		case <-late:
			t.Fatalf("a minute later it is not so: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestSystemdTakesTheUnit(t *testing.T) {
	t.Parallel()
	systemd, err := exec.LookPath("systemd-analyze")
	if errors.Is(err, exec.ErrNotFound) {
		t.Log("systemd is not here: the unit is not tried")
		return
	}
	unit := filepath.Join(t.TempDir(), "shop.service")
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(read(t, "shop.service"), "/usr/local/bin/shop", program)
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), systemd, "verify", unit).CombinedOutput(); err != nil || bytes.Contains(out, []byte(unit)) {
		t.Errorf("%v: %s", err, out)
	}
}

// idem.Serve takes 30 seconds at most to end: 15 for deliveries, and 15 for handlers.
func TestHostsWaitForTheEnd(t *testing.T) {
	t.Parallel()
	for file, setting := range map[string]string{"shop.service": `TimeoutStopSec=(\d+)`, "fly.toml": `kill_timeout = "(\d+)s"`} {
		found := regexp.MustCompile(setting).FindStringSubmatch(read(t, file))
		if found == nil {
			t.Errorf("%s has no %s", file, setting)
			continue
		}
		if seconds, _ := strconv.Atoi(found[1]); seconds <= 30 {
			t.Errorf("%s waits for %d seconds", file, seconds)
		}
	}
	for _, file := range []string{"fly.toml", "cloudrun.sh"} {
		if text := read(t, file); !strings.Contains(text, "/up") || strings.Contains(text, "/health/webhooks") {
			t.Errorf("%s probes health", file)
		}
	}
	if out, err := exec.Command("sh", "-n", "cloudrun.sh").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
