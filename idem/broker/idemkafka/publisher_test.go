package idemkafka_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/idemkafka"
)

func TestAClientThatWouldLoseMessagesOrTheirOrderIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		opts   []kgo.Opt
		want   string // part of the error; "" for none
	}{
		{"defaults are right", nil, ""},
		{"a producer of its own transactions has all acks", []kgo.Opt{kgo.TransactionalID("shop")}, ""},
		{"so has one without idempotency", []kgo.Opt{kgo.DisableIdempotentWrite()}, ""},
		{"one replica may be lost", []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck())}, "before all in-sync replicas"},
		{"none confirms", []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.NoAck())}, "before all in-sync replicas"},
		{"nobody flushes", []kgo.Opt{kgo.ManualFlushing()}, "Flush"},
		{"one Key is in many partitions", []kgo.Opt{kgo.RecordPartitioner(kgo.RoundRobinPartitioner())}, "ignores keys"},
		{"one Key is in one partition", []kgo.Opt{kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil))}, ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			_, err := idemkafka.NewPublisher(newClient(t, test.opts...), "webhooks")
			wantError(t, err, test.want)
		})
	}
	if _, err := idemkafka.NewPublisher(newClient(t), ""); err == nil {
		t.Error("a publisher without a topic was made")
	}
}

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if part == "" && err != nil {
		t.Errorf("got error %v, want none", err)
	}
	if part != "" && (err == nil || !strings.Contains(err.Error(), part)) {
		t.Errorf("got error %v, want one with %q", err, part)
	}
}

func TestMessagesAreCloudEventsInOnePartitionPerKey(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	p := f.publisher(t)
	at := time.Date(2026, 11, 22, 3, 4, 5, 6000, time.UTC)
	var want []broker.Message
	for n := range 20 {
		m := broker.Message{Source: "shop", ID: fmt.Sprint("m", n), Type: "order.paid", Key: fmt.Sprint("order-", n%5), Time: at, Body: []byte{byte(n)}}
		want = append(want, m)
		publish(t, p, m)
	}
	publish(t, p, broker.Message{Source: "shop", ID: "keyless", Type: "day.closed"})

	partitionOf := map[string]int32{}
	next := map[string]int{}
	for _, r := range f.records(t, 21) {
		headers := map[string]string{}
		for _, h := range r.Headers {
			headers[h.Key] = string(h.Value)
		}
		if headers["ce_id"] == "keyless" {
			wantHeaders := map[string]string{"ce_specversion": "1.0", "ce_id": "keyless", "ce_source": "shop", "ce_type": "day.closed"}
			if diff := cmp.Diff(wantHeaders, headers); diff != "" || r.Key != nil {
				t.Errorf("key %q, headers:\n%s", r.Key, diff)
			}
			continue
		}
		key := headers["ce_subject"]
		m := want[next[key]*5+int(key[len(key)-1]-'0')]
		next[key]++
		wantHeaders := map[string]string{
			"ce_specversion": "1.0", "ce_id": m.ID, "ce_source": "shop", "ce_type": "order.paid", "ce_subject": m.Key,
			"ce_time": "2026-11-22T03:04:05.000006Z",
		}
		if diff := cmp.Diff(wantHeaders, headers); diff != "" {
			t.Error(diff)
		}
		if string(r.Key) != "shop/"+m.Key || string(r.Value) != string(m.Body) {
			t.Errorf("record of %s has key %q and value %q", m.ID, r.Key, r.Value)
		}
		if before, ok := partitionOf[key]; ok && before != r.Partition {
			t.Errorf("messages of %s are in partitions %d and %d", key, before, r.Partition)
		}
		partitionOf[key] = r.Partition
	}
}

func TestAnErrorOfTheBrokersIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		err    *kerr.Error
		want   string
	}{
		{"the topic takes smaller ones", kerr.MessageTooLarge, "max.message.bytes"},
		{"no right to publish", kerr.TopicAuthorizationFailed, "TOPIC_AUTHORIZATION_FAILED"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			fault := f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: f.topic, Err: test.err})
			err := f.publisher(t).Publish(t.Context(), broker.Message{Source: "shop", ID: "1", Type: "paid"})
			wantError(t, err, test.want)
			if tooLarge := errors.Is(err, broker.ErrTooLarge); tooLarge != (test.err == kerr.MessageTooLarge) {
				t.Errorf("that %v has broker.ErrTooLarge is %v", err, tooLarge)
			}
			if fault.Hits() != 1 {
				t.Errorf("the brokers were asked %d times, want once", fault.Hits())
			}
		})
	}
}

func TestWhatPassesIsTriedAgainByTheClient(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	fault := f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: f.topic, Err: kerr.NotEnoughReplicas, Count: 2})
	publish(t, f.publisher(t), broker.Message{Source: "shop", ID: "1", Type: "paid"})
	if fault.Hits() != 2 {
		t.Errorf("the fault has hit %d times, want 2", fault.Hits())
	}
	f.records(t, 1)
}

// produced gets a value for each produce request that a client has sent.
type produced chan struct{}

func (p produced) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if err == nil && kmsg.Key(key) == kmsg.Produce {
		p <- struct{}{}
	}
}

// A message with an ended context is never confirmed, and may still be published.
func TestPublishEndsWithItsContextAndTheMessageMayStillBePublished(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	sent := make(produced, 100)
	p, err := idemkafka.NewPublisher(newClient(t, kgo.SeedBrokers(f.addresses...), kgo.WithHooks(sent)), f.topic)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p, broker.Message{Source: "shop", ID: "before", Type: "paid"})
	<-sent
	resume := f.hang(t)
	defer resume()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-sent; cancel() }()
	err = p.Publish(ctx, broker.Message{Source: "shop", ID: "during", Type: "paid"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	wantError(t, err, "may still")
	resume()
	publish(t, p, broker.Message{Source: "shop", ID: "after", Type: "paid"})
	var ids []string
	for _, r := range f.records(t, 3) {
		for _, h := range r.Headers {
			if h.Key == "ce_id" {
				ids = append(ids, string(h.Value))
			}
		}
	}
	if len(ids) != 3 {
		t.Errorf("the topic has %v, want also the one that was not confirmed", ids)
	}
}

func TestCheckNamesWhatWouldLoseConfirmedMessages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason  string
		brokers int
		topic   map[string]string // nil for none
		want    []string          // parts of the error
	}{
		{"two of three brokers have it", 3, map[string]string{"min.insync.replicas": "2"}, nil},
		{"one broker has it", 3, map[string]string{"min.insync.replicas": "1"}, []string{"set it to 2"}},
		{"there is one broker", 1, map[string]string{"min.insync.replicas": "1"}, []string{"replication factor of 3", "min.insync.replicas"}},
		{"a leader may lack it", 3, map[string]string{"min.insync.replicas": "2", "unclean.leader.election.enable": "true"}, []string{"unclean.leader.election.enable"}},
		{"only the last of a key is kept", 3, map[string]string{"min.insync.replicas": "2", "cleanup.policy": "compact", "retention.ms": "1"}, []string{"cleanup.policy", "retention.ms"}},
		{"it is kept for hours, and while there is room", 3, map[string]string{"min.insync.replicas": "2", "retention.ms": "3600000", "retention.bytes": "1000"}, []string{"4 days (345600000)", "retention.bytes"}},
		{"it is kept for long", 3, map[string]string{"min.insync.replicas": "2", "retention.ms": "345600000"}, nil},
		{"it is kept for ever", 3, map[string]string{"min.insync.replicas": "2", "retention.ms": "-1"}, nil},
		{"it is kept for ages", 3, map[string]string{"min.insync.replicas": "2", "retention.ms": "9223372036854775807"}, nil},
		{"there is no topic", 3, nil, []string{"create it"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			cluster, err := kfake.NewCluster(kfake.NumBrokers(test.brokers))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cluster.Close)
			if test.topic != nil {
				if err := cluster.CreateTopic("webhooks", 2, test.topic); err != nil {
					t.Fatal(err)
				}
			}
			p, err := idemkafka.NewPublisher(newClient(t, kgo.SeedBrokers(cluster.ListenAddrs()...)), "webhooks")
			if err != nil {
				t.Fatal(err)
			}
			err = p.Check(t.Context())
			if test.want == nil {
				wantError(t, err, "")
				return
			}
			for _, part := range test.want {
				wantError(t, err, part)
			}
			if named := strings.Count(err.Error(), "idemkafka: "); named != len(test.want) {
				t.Errorf("the error names %d things, want %d:\n%v", named, len(test.want), err)
			}
		})
	}
}

func (f *fake) publisher(t testing.TB) *idemkafka.Publisher {
	t.Helper()
	p, err := idemkafka.NewPublisher(newClient(t, kgo.SeedBrokers(f.addresses...)), f.topic)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func publish(t testing.TB, p broker.Publisher, m broker.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Publish(ctx, m); err != nil {
		t.Fatal(err)
	}
}

// records waits for so many records, in the order of each partition.
func (f *fake) records(t testing.TB, count int) (records []*kgo.Record) {
	t.Helper()
	client := newClient(t, kgo.SeedBrokers(f.addresses...), kgo.ConsumeTopics(f.topic))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(records) < count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d of %d records: %v", len(records), count, err)
		}
		records = append(records, fetches.Records()...)
	}
	return records
}
