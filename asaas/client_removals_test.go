package asaas_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// removing makes clients of one API, as several processes do, which counts the
// removals.
func removing(t *testing.T, dir string) (newClient func() *asaas.Client, removed *atomic.Int64) {
	t.Helper()
	removed = new(atomic.Int64)
	first := clientWith(t, func(w http.ResponseWriter, _ *http.Request) {
		removed.Add(1)
		w.WriteHeader(http.StatusNoContent)
	})
	return func() *asaas.Client {
		client, err := asaas.NewClient(asaas.Production, apiKey)
		if err != nil {
			t.Fatal(err)
		}
		client.BaseURL, client.StateDir = first.BaseURL, dir
		return client
	}, removed
}

func TestProcessesOfAMachineShareTheLimitOfRemovals(t *testing.T) {
	t.Parallel()
	newClient, removed := removing(t, filepath.Join(t.TempDir(), "not", "there", "yet"))
	var processes sync.WaitGroup
	var tooSoon atomic.Int64
	for range 8 {
		processes.Go(func() {
			err := newClient().RemoveBackoff(t.Context(), webhookID)
			e, _ := errors.AsType[*asaas.APIError](err)
			if errors.Is(err, asaas.ErrTooSoon) && e.RetryAfter > 0 && e.RetryAfter <= time.Minute {
				tooSoon.Add(1)
			}
		})
	}
	processes.Wait()
	if removed.Load() != 1 || tooSoon.Load() != 7 {
		t.Errorf("%d removals, %d are too soon", removed.Load(), tooSoon.Load())
	}
	if err := newClient().RemoveBackoff(t.Context(), "another"); err != nil {
		t.Errorf("another webhook: %v", err)
	}
	never := newClient()
	never.MinRemoveBackoff = 0
	if err := never.RemoveBackoff(t.Context(), webhookID); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

func TestANoteOfARemovalIsReadWithCare(t *testing.T) {
	t.Parallel()
	format := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }
	for _, tt := range []struct {
		reason, note string
		removed      bool
	}{
		{"a moment ago", format(-time.Second), false},
		{"long ago", format(-time.Hour), true},
		{"before the clock was set back", format(time.Hour), true},
		{"no time", "yesterday", true},
		{"a write that was cut off", "2026-", true},
	} {
		dir := t.TempDir()
		newClient, removed := removing(t, dir)
		if err := newClient().RemoveBackoff(t.Context(), webhookID); err != nil {
			t.Fatal(err)
		}
		notes, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(notes) != 1 || strings.Contains(notes[0], webhookID) {
			t.Fatalf("the notes are %q, %v", notes, err)
		}
		if err := os.WriteFile(notes[0], []byte(tt.note), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = newClient().RemoveBackoff(t.Context(), webhookID)
		if got := removed.Load() == 2; got != tt.removed {
			t.Errorf("%s: removed: %t", tt.reason, got)
		}
	}
}

func TestARemovalThatWasNotSentIsNotNoted(t *testing.T) {
	t.Parallel()
	newClient, removed := removing(t, t.TempDir())
	offline := newClient()
	offline.UserAgent = ""
	if err := offline.RemoveBackoff(t.Context(), webhookID); err == nil {
		t.Error("it was sent")
	}
	if err := newClient().RemoveBackoff(t.Context(), webhookID); err != nil || removed.Load() != 1 {
		t.Errorf("%d removals, %v", removed.Load(), err)
	}
}

func TestAStateDirThatCannotBeUsedIsSaid(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	newClient, removed := removing(t, file)
	for range 2 { // the second is not too soon
		err := newClient().RemoveBackoff(t.Context(), webhookID)
		if err == nil || !strings.Contains(err.Error(), "nothing was sent: when it was done last cannot be noted") || removed.Load() != 0 {
			t.Errorf("%d removals, %v", removed.Load(), err)
		}
	}
}
