package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Between the look at the others and this, one that was slow has written its row.
func TestAWorkerThatHasGivenASignSinceItWasSeenIsNotDeleted(t *testing.T) {
	t.Parallel()
	d := with(t)
	seen, err := store.Sign(t.Context(), d, store.Worker{ID: 9, Source: "s", Host: "host", PID: 3}, 0)
	if err != nil || len(seen) != 2 {
		t.Fatalf("the others are %+v, %v, want %d and %d", seen, err, alive, ours)
	}
	d.exec(`update idem_workers set seen_at = seen_at + interval '1 microsecond' where id = $1`, alive)
	deleted, err := store.DeleteWorkers(t.Context(), d, seen)
	if diff := cmp.Diff([]int64{ours}, deleted); diff != "" || err != nil {
		t.Errorf("deleted, %v (-want +got):\n%s", err, diff)
	}
	var left int
	if err := d.QueryRow(t.Context(), `select count(*) from idem_workers where id in ($1, 9)`, alive).Scan(&left); err != nil || left != 2 {
		t.Errorf("%d of the living are left, %v, want 2", left, err)
	}
}

// A worker whose row others have deleted writes it again, by its next sign.
func TestAWorkerWhoseRowWasDeletedWritesItAgain(t *testing.T) {
	t.Parallel()
	d := with(t)
	d.exec(`delete from idem_workers where id = $1`, ours)
	if _, err := store.Sign(t.Context(), d, store.Worker{ID: ours, Source: "s", Host: "host", PID: 2}, time.Minute); err != nil {
		t.Fatal(err)
	}
	living, err := store.LivingWorkers(t.Context(), d, "s")
	if err != nil || len(living) != 2 || living[0].ID != ours {
		t.Errorf("alive are %+v, %v", living, err)
	}
}
