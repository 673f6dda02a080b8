package idemtest

import (
	"slices"

	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// fault is a point at which the connection is cut.
type fault struct {
	stage int // its index
	step  pgproxy.Step
	point pgproxy.Point
}

// faultsIn are the faults in a stage that make a difference. It is the same
// whether an answer that Postgres keeps back is lost or the next message is, and
// whether or not Postgres gets a message that changes nothing.
func faultsIn(stage int, steps []pgproxy.Step) (all []fault) {
	unchanged := false // since the fault before
	for _, step := range steps {
		if !unchanged {
			all = append(all, fault{stage, step, pgproxy.BeforeSent})
		}
		if step.Answered {
			all = append(all, fault{stage, step, pgproxy.BeforeAnswer}, fault{stage, step, pgproxy.AfterAnswer})
		}
		unchanged = slices.Contains(preparing, step.Message)
	}
	return all
}

// preparing are the messages of which nothing is left without their connection.
var preparing = []string{"Parse", "Bind", "Describe"}
