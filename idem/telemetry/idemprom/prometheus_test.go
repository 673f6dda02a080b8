//go:build prometheus

// These tests need the program prometheus: go test -tags prometheus. Without it, alerts
// are tested with its engine all the same, and scrapes with its parser.

package idemprom_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
)

// server is a Prometheus that scrapes a shop once a second, with the alerts.
type server struct {
	*testing.T
	url string
	log bytes.Buffer
}

// startPrometheus starts the Prometheus of this machine, which is Debian's package
// of that name.
func startPrometheus(t *testing.T, target string) *server {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("prometheus is not here: apt-get install prometheus")
	}
	folder := t.TempDir()
	alerts, err := filepath.Abs("alerts/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	scraped, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: shop, metrics_path: /, static_configs: [{targets: [%q]}]}]\n", alerts, scraped.Host)
	if err := os.WriteFile(filepath.Join(folder, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := brokertest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprint("127.0.0.1:", port)
	s := &server{T: t, url: "http://" + address}
	command := exec.Command(program, "--config.file="+filepath.Join(folder, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+address)
	command.Stdout, command.Stderr = &s.log, &s.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	return s
}

// ask calls Prometheus's API.
func (s *server) ask(path string, data any) error {
	answer, err := http.Get(s.url + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", answer.Status, body.Error)
	}
	return nil
}

// query returns how many series an expression has.
func (s *server) query(expr string) (series int, err error) {
	var found struct{ Result []json.RawMessage }
	err = s.ask("/api/v1/query?query="+url.QueryEscape(expr), &found)
	return len(found.Result), err
}

// eventually asks until the answer is yes.
func (s *server) eventually(what string, yes func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for !yes() {
		select {
		case <-again.C:
		case <-ctx.Done():
			s.Fatalf("a minute has passed, and still not: %s", what)
		}
	}
}

func TestPrometheusScrapesTheMetricsAndFindsTheParkedEvent(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := startPrometheus(t, s.url)
	s.everything()
	s.work = func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return idem.NoRetry(errNoOrder) }
	s.deliver(s.first(), token, asaastest.Event("PAYMENT_RECEIVED"), http.StatusOK) // and parked

	p.eventually("two scrapes of all metrics", func() bool {
		n, err := p.query(`count_over_time(webhook_attempts_total[1m]) > 1`)
		return n > 0 && err == nil
	})
	for name := range table(t) {
		if n, err := p.query(name + " or " + name + "_bucket"); n == 0 || err != nil {
			t.Errorf("Prometheus has %d series of %s, %v", n, name, err)
		}
	}
	for _, expr := range expressions(t) {
		expr = strings.NewReplacer("$source", ".*", "$__rate_interval", "1m").Replace(expr)
		if n, err := p.query(expr); n == 0 || err != nil {
			t.Errorf("the dashboard's query has %d series, %v: %s", n, err, expr)
		}
	}

	var rules struct {
		Groups []struct {
			Rules []struct{ Name, State, Health, LastError string }
		}
	}
	p.eventually("the parked event is noticed, and all rules were evaluated", func() bool {
		err := p.ask("/api/v1/rules", &rules)
		noticed, evaluated := false, true
		for _, g := range rules.Groups {
			for _, rule := range g.Rules {
				noticed = noticed || rule.Name == "WebhookUnhealthy" && rule.State == "pending"
				evaluated = evaluated && rule.Health == "ok"
			}
		}
		return err == nil && noticed && evaluated && len(rules.Groups) > 0
	})
	noticed := map[string]string{}
	for _, rule := range rules.Groups[0].Rules {
		if rule.State != "inactive" {
			noticed[rule.Name] = rule.State
		}
	}
	want := map[string]string{
		"WebhookUnhealthy": "pending", "WebhookQueueInterrupted": "pending",
		"WebhookQueuePenalized": "pending", "WebhookQueueDeletion": "firing",
	}
	if diff := cmp.Diff(want, noticed); diff != "" {
		t.Error("what Prometheus alerts of (-want +got):\n" + diff)
	}
}
