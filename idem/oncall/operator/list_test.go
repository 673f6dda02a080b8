package operator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// Dead workers are seen until others notice: nobody does where all of them are dead.
func TestStateShowsTheWorkersOfAllProcessesWithTheirLastSign(t *testing.T) {
	t.Parallel()
	pool := testkit.Open(t)
	testkit.Exec(t, pool, `insert into idem_workers values (1, 'notes', 'shop-1', 7, now() - interval '1 hour', now() - interval '43 minutes'),
		(2, 'notes', 'shop-2', 8, now() - interval '1 minute', now()), (3, 'letters', 'shop-3', 9, now(), now())`)
	state, err := operator.New(idem.NewInbox(pool, testkit.NewSource("notes")), "").State(t.Context())
	var got []string
	for _, w := range state.Workers {
		got = append(got, fmt.Sprintf("%s %d %s alive: %t", w.Host, w.PID, w.Silent.Round(time.Minute), w.Alive))
	}
	if diff := cmp.Diff([]string{"shop-1 7 43m0s alive: false", "shop-2 8 0s alive: true"}, got); diff != "" || err != nil {
		t.Error(err, "the workers (-want +got):\n"+diff)
	}
}
