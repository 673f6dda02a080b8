package asaas_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestACountThatDoesNotFallEndsARecovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, _ := clientOn(t, looked(false, 9), scriptedAnswer{status: 204}, looked(false, 8), looked(false, 8))
		start := time.Now()
		_, err := stepsOf(t.Context(), client, passes)
		if err == nil || !strings.Contains(err.Error(), "the count of failures is still 8, no less for 10m0s") || time.Since(start) != 10*time.Minute+client.Poll {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

// Nobody knows what resuming does to the penalty.
func TestAPenaltyThatOutlivesAResumeIsRemovedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		still := looked(false, 15)
		client, _ := clientOn(t, looked(true, 15), still, still, still, still, scriptedAnswer{status: 204}, still, looked(false, 0))
		client.Poll = 20 * time.Second
		got, err := stepsOf(t.Context(), client, passes)
		want := []string{"probed 15", "resumed 15", "watching 15", "watching 15", "watching 15", "penalty removed 15", "watching 15", "watching 0", "watching 0", "watching 0", "done 0"}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		client, s := clientOn(t, looked(true, 15), still, still, still, still, scriptedAnswer{status: 204}, still)
		client.Poll = 20 * time.Second
		got, err = stepsOf(t.Context(), client, passes)
		says := "the queue was resumed, the penalty was removed: the count of failures is still 15, no less for 10m0s: see in the webhook's log at Asaas whether it delivers; " +
			"if it does, all is well, and the count goes in time; if not, remove the penalty once more, and then ask Asaas"
		if err == nil || !strings.HasSuffix(err.Error(), says) || s.sent.Load() != 1+1+3+1+30 {
			t.Errorf("%d requests, %v: %v", s.sent.Load(), got, err)
		}
	})
}

func TestAPauseThatAsaasAsksForDoesNotEndARecovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := scriptedAnswer{status: 503, after: "300"} // longer than a call may take
		client, _ := clientOn(t, looked(false, 2), scriptedAnswer{status: 204}, busy, looked(false, 0))
		got, err := stepsOf(t.Context(), client, passes)
		want := []string{"probed 2", "penalty removed 2", "watching 0", "watching 0", "watching 0", "done 0"}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}
