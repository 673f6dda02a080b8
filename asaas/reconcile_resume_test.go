package asaas_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// manyCharges are more than two pages, all paid while no events came.
func (m *merchant) manyCharges(t *testing.T, n int) (want []string) {
	t.Helper()
	var bodies [][]byte
	for range n {
		c := chargeOn(asaas.BillingTypePix, 10)
		bodies = append(bodies, c.Created(), c.Received())
		want = append(want, c.Payment.ID)
	}
	m.disabled(t, bodies...)
	slices.Sort(want)
	return want
}

func TestAReportGoesOnAfterAPauseAndAfterACrash(t *testing.T) {
	t.Parallel()
	m := newMerchant(t)
	want := m.manyCharges(t, 250)
	m.asaas.Limit = asaastest.RateLimit{Requests: 8, Window: 12 * time.Hour} // two are used
	got := make(map[string]string)                                           // by which scan
	settings := m.gap()
	run := func(stop func(asaas.ReconcileProgress) bool) (last asaas.ReconcileProgress) {
		for p, err := range asaas.Reconcile(t.Context(), m.client, settings) {
			if err != nil {
				t.Fatal(err)
			}
			if last = p; p.Difference != nil {
				got[p.Difference.Charge] = p.Difference.FoundBy
			}
			if stop(p) {
				break
			}
		}
		text, err := json.Marshal(last.Cursor)
		settings = m.gap()
		settings.Since = settings.Until.AddDate(0, 1, 0) // the cursor's gap counts
		settings.Until = settings.Since.AddDate(0, 1, 0)
		settings.Resume = new(asaas.ReconcileCursor)
		if err := errors.Join(err, json.Unmarshal(text, settings.Resume)); err != nil {
			t.Fatal(err)
		}
		return last
	}
	crash := run(func(asaas.ReconcileProgress) bool { return len(got) == 100 })
	if crash.Step != asaas.ReconcileDifference {
		t.Fatalf("it comes to %s before the crash", crash)
	}
	paused := run(func(asaas.ReconcileProgress) bool { return false })
	if paused.Step != asaas.ReconcilePaused || paused.Again <= 0 {
		t.Fatalf("it ends with %s, want a pause", paused)
	}
	m.asaas.Advance(13 * time.Hour)
	m.asaas.Limit.Requests = 1000
	if last := run(func(asaas.ReconcileProgress) bool { return false }); last.Step != asaas.ReconcileDone {
		t.Errorf("it ends with %s", last)
	}
	if diff := cmp.Diff(len(want), len(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, id := range want {
		if got[id] != "created" {
			t.Errorf("%s is found by %q, want by the first scan", id, got[id])
		}
	}
}

// vanishing removes a charge once the first page of the list of charges was read.
type vanishing struct {
	http.RoundTripper
	remove func()
	once   sync.Once
}

func (r *vanishing) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	if strings.HasSuffix(request.URL.Path, "/payments") && request.URL.Query().Get("offset") == "0" {
		r.once.Do(r.remove)
	}
	return response, err
}

// The last page says one row less than the first, as many as were read: the first number counts.
func TestAChargeThatIsRemovedWhileTheListIsReadHidesNoOther(t *testing.T) {
	t.Parallel()
	m := newMerchant(t)
	var bodies [][]byte
	var last *asaastest.Charge
	want := make(map[string]bool)
	for range 250 {
		last = chargeOn(asaas.BillingTypePix, 10)
		bodies = append(bodies, last.Created())
		want[last.Payment.ID] = true
	}
	m.disabled(t, bodies...)
	delete(want, last.Payment.ID)
	m.client.Transport = &vanishing{RoundTripper: http.DefaultTransport, remove: func() { m.emit(last.Deleted()) }}
	for p, err := range asaas.Reconcile(t.Context(), m.client, m.gap()) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Difference != nil {
			delete(want, p.Difference.Charge)
		}
	}
	if len(want) > 0 {
		t.Errorf("not named: %v", slices.Collect(maps.Keys(want)))
	}
}

func TestARunKeepsToItsShareOfTheQuota(t *testing.T) {
	t.Parallel()
	m := newMerchant(t)
	settings := m.gap()
	settings.Calls = 200
	for n := range 450 {
		settings.Open = append(settings.Open, fmt.Sprintf("pay_%03d", n))
	}
	runs, reported := 0, make(map[string]bool)
	for runs < 10 {
		runs++
		var last asaas.ReconcileProgress
		for p, err := range asaas.Reconcile(t.Context(), m.client, settings) {
			if err != nil {
				t.Fatal(err)
			}
			if last = p; p.Difference != nil {
				reported[p.Difference.Charge] = true
			}
		}
		if last.Counts.Calls > 200 {
			t.Errorf("a run makes %d calls", last.Counts.Calls)
		}
		if last.Step == asaas.ReconcileDone {
			break
		}
		settings.Resume = &last.Cursor
	}
	if runs >= 10 || len(reported) != 450 {
		t.Errorf("%d charges are reported after %d runs", len(reported), runs)
	}
}
