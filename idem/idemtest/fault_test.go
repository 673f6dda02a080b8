package idemtest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

func TestFaultsThatMakeNoDifferenceAreLeftOut(t *testing.T) {
	t.Parallel()
	prepare := []string{"Parse", "Describe", "Parse", "Describe"}
	execute := []string{"Bind", "Describe", "Execute", "Bind", "Execute"}
	for _, c := range []struct {
		why      string
		messages []string
		want     []string
	}{
		{"statements are forgotten with their connection", append(prepare, "Sync"), []string{
			"Parse before it is sent",
			"Sync after it is sent and before its answer", "Sync after its answer",
		}},
		{"each Execute changes something", append(execute, "Sync"), []string{
			"Bind before it is sent",
			"Bind before it is sent",
			"Sync before it is sent", "Sync after it is sent and before its answer", "Sync after its answer",
		}},
		{"a Query is all of that", []string{"Query"}, []string{
			"Query before it is sent", "Query after it is sent and before its answer", "Query after its answer",
		}},
		{"a new connection is a session", []string{"StartupMessage", "Query"}, []string{
			"StartupMessage before it is sent", "StartupMessage after it is sent and before its answer", "StartupMessage after its answer",
			"Query before it is sent", "Query after it is sent and before its answer", "Query after its answer",
		}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range faultsIn(0, steps(c.messages)) {
				got = append(got, f.step.Message+" "+string(f.point))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

func steps(messages []string) (steps []pgproxy.Step) {
	for n, message := range messages {
		answered := message != "Execute" && !slices.Contains(preparing, message)
		steps = append(steps, pgproxy.Step{Number: n + 1, Message: message, Answered: answered})
	}
	return steps
}
