package asaastest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas/asaastest"
)

func TestSchedulesAreAsDocumented(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why      string
		schedule asaastest.RetrySchedule
		at       []string // of the attempts, since the first
	}{
		{"the page in Portuguese: 12 h 50 min", asaastest.PortugueseSchedule, []string{
			"0s", "30s", "1m30s", "5m0s", "10m0s", "25m0s", "50m0s", "1h50m0s", "2h50m0s", "3h50m0s", "4h50m0s", "5h50m0s", "7h50m0s", "9h50m0s", "12h50m0s",
		}},
		{"the page in English: 10 h 50 min", asaastest.EnglishSchedule, []string{
			"0s", "30s", "1m30s", "5m0s", "10m0s", "25m0s", "50m0s", "1h50m0s", "2h50m0s", "3h50m0s", "4h50m0s", "5h50m0s", "6h50m0s", "7h50m0s", "10h50m0s",
		}},
		{"the older page: every 30 s", asaastest.OlderSchedule, []string{
			"0s", "30s", "1m0s", "1m30s", "2m0s", "2m30s", "3m0s", "3m30s", "4m0s", "4m30s", "5m0s", "5m30s", "6m0s", "6m30s", "7m0s",
		}},
	} {
		for _, sendType := range []asaastest.SendType{asaastest.Sequentially, asaastest.NonSequentially} {
			fake := newFake(t)
			fake.Schedule = test.schedule
			webhook := fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusInternalServerError), SendType: sendType})
			began := fake.Now()
			fake.Emit(paid("evt_1"))
			fake.Advance(13 * 24 * time.Hour)

			failed := of(fake, asaastest.Failed)
			if diff := cmp.Diff(test.at, times(began, failed)); diff != "" {
				t.Errorf("%s, %s: attempts (-want +got):\n%s", test.why, sendType, diff)
			}
			for i, e := range failed {
				var next time.Time
				if i+1 < len(failed) {
					next = failed[i+1].At
				}
				if e.Attempt != i+1 || !e.Next.Equal(next) || e.Status != http.StatusInternalServerError {
					t.Errorf("%s, %s: failure %d is %s", test.why, sendType, i+1, e)
				}
			}
			emails := []string{test.at[4], test.at[9], test.at[14]}
			if diff := cmp.Diff(emails, times(began, of(fake, asaastest.Emailed))); diff != "" {
				t.Errorf("%s, %s: e-mails (-want +got):\n%s", test.why, sendType, diff)
			}
			if diff := cmp.Diff(test.at[14:], times(began, of(fake, asaastest.Paused))); diff != "" {
				t.Errorf("%s, %s: pauses (-want +got):\n%s", test.why, sendType, diff)
			}
			if w := fake.Webhook(webhook); !w.Interrupted || w.Penalized != 15 || w.Pending != 1 {
				t.Errorf("%s, %s: in the end it is %+v", test.why, sendType, w)
			}
		}
	}
}

func TestPortugueseScheduleIsTheDefault(t *testing.T) {
	t.Parallel()
	if newFake(t).Schedule != asaastest.PortugueseSchedule {
		t.Error("it is not")
	}
}

func TestSuccessStartsTheCountAgain(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusInternalServerError), newFake(t)
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: s})
	fake.Emit(paid("evt_1"))
	fake.Advance(10 * time.Hour) // 14 failures
	s.answers(http.StatusOK)
	fake.Advance(3 * time.Hour)
	if got := fake.Webhook(webhook); got.Penalized != 0 || got.Pending != 0 {
		t.Fatalf("after a success it is %+v", got)
	}
	s.answers(http.StatusInternalServerError)
	fake.Emit(paid("evt_2"))
	fake.Advance(time.Minute)
	if got := fake.Webhook(webhook); got.Penalized != 2 || got.Interrupted {
		t.Errorf("after two failures it is %+v", got)
	}
}
