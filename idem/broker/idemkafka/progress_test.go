package idemkafka

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/idem/broker"
)

// A rebalance may begin as soon as no handler runs, and commits before.
func TestAMessageIsDoneOnceItsHandlerHasReturned(t *testing.T) {
	t.Parallel()
	g := newGroup(t.Context(), nil, nil, func(context.Context, broker.Message) error { return nil })
	deliveries := g.note(kgo.Fetches{{Topics: []kgo.FetchTopic{{
		Topic: "webhooks", Partitions: []kgo.FetchPartition{{Records: []*kgo.Record{{Topic: "webhooks", Offset: 7}, {Topic: "webhooks", Offset: 8}}}},
	}}}})
	if err := deliveries[0].Handle(t.Context(), deliveries[0].Message); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[int32]kgo.EpochOffset{"webhooks": {0: {Offset: 8}}}
	if diff := cmp.Diff(want, g.uncommitted(nil)); diff != "" {
		t.Errorf("the offsets to commit (-want +got):\n%s", diff)
	}
}
