package operator

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// State is the first thing to look at on call: the source's events that are not done.
type State struct {
	idem.Stats

	Failing      int64     // events that have failed, and are tried again by themselves
	FailingTypes []Failing // the three types that most of them have, the most frequent first

	Standing         int64 // events that wait behind a parked one
	StandingEntities int64 // entities of those
}

// Failing is the events of a type that have failed, and are tried again by themselves.
type Failing struct {
	Type   string
	Events int64
}

// failingTypes is the number of types that State lists.
const failingTypes = 3

// State counts the source's events that are not done. It reads all of those, and nothing of others.
func (o *Operator) State(ctx context.Context) (s State, err error) {
	if s.Stats, err = o.Stats(ctx); err != nil {
		return s, err
	}
	_, err = timed(ctx, func(ctx context.Context) (struct{}, error) {
		types, n, err := store.ListFailing(ctx, o.Pool(), o.SourceName(), failingTypes)
		if err != nil {
			return struct{}{}, err
		}
		s.Failing = n
		for _, t := range types {
			s.FailingTypes = append(s.FailingTypes, Failing(t))
		}
		s.Standing, s.StandingEntities, err = store.CountStanding(ctx, o.Pool(), o.SourceName())
		return struct{}{}, err
	})
	if err != nil {
		return s, fmt.Errorf("operator: counting events: %w", store.Explain(err))
	}
	return s, nil
}
