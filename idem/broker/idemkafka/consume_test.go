package idemkafka_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
	"github.com/paghooks/paghooks/idem/broker/idemkafka"
)

func TestAClientThatWouldLoseWhatItConsumesIsRefused(t *testing.T) {
	t.Parallel()
	group, topics := kgo.ConsumerGroup("shop"), kgo.ConsumeTopics("webhooks")
	right, start, end := []kgo.Opt{group, topics, kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll()}, kgo.NewOffset().AtStart(), kgo.NewOffset().AtEnd()
	for _, test := range []struct {
		reason string
		opts   []kgo.Opt
		want   string
	}{
		{"nobody remembers offsets", []kgo.Opt{topics}, "no consumer group"},
		{"offsets are committed before the work", []kgo.Opt{group, topics, kgo.BlockRebalanceOnPoll()}, "DisableAutoCommit"},
		{"what came before the group did is passed over", append(slices.Clone(right), kgo.ConsumeStartOffset(end)), "AtEnd"},
		{"also by its older name", append(slices.Clone(right), kgo.ConsumeResetOffset(end)), "AtEnd"},
		{"so is what came before a reset", append(slices.Clone(right), kgo.ConsumeStartOffset(start), kgo.ConsumeResetOffset(end)), "AtEnd"},
		{"others handle the same at the same time", []kgo.Opt{group, topics, kgo.DisableAutoCommit()}, "BlockRebalanceOnPoll"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			err := idemkafka.Consume(t.Context(), newClient(t, test.opts...), func(context.Context, broker.Message) error { return nil })
			wantError(t, err, test.want)
		})
	}
}

// consumption is a call of Consume in the background.
type consumption struct {
	*testing.T
	client *kgo.Client
	handle broker.Handle
	stop   func() // waits for its end

	mu      sync.Mutex
	begun   []string // IDs, each time
	done    []string
	changed chan struct{} // the fake's
}

func (f *fake) consume(t *testing.T, handle broker.Handle, opts ...kgo.Opt) *consumption {
	t.Helper()
	c := &consumption{T: t, handle: handle, changed: f.changed}
	c.client = newClient(t, append(consuming(f.topic, f.addresses...), opts...)...)
	c.stop = brokertest.Background(t, func(ctx context.Context) error {
		return idemkafka.ConsumeWith(ctx, broker.Consumer{Logger: slog.New(slog.DiscardHandler)}, c.client, c.count)
	})
	return c
}

func (c *consumption) count(ctx context.Context, m broker.Message) error {
	c.note(&c.begun, m.ID)
	err := c.handle(ctx, m)
	if err == nil {
		c.note(&c.done, m.ID)
	}
	return err
}

func (c *consumption) note(ids *[]string, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*ids = append(*ids, id)
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// times counts how often messages were begun, or done.
func (c *consumption) times(ids *[]string) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	times := map[string]int{}
	for _, id := range *ids {
		times[id]++
	}
	return times
}

// await waits until holds does.
func (c *consumption) await(what string, holds func() bool) {
	c.Helper()
	late := time.After(patience)
	for !holds() {
		select {
		case <-c.changed:
		case <-late:
			c.Fatalf("waited %s in vain for %s; begun: %v", patience, what, c.times(&c.begun))
		}
	}
}

// awaitDone waits until each of these messages is done.
func (c *consumption) awaitDone(ids ...string) {
	c.Helper()
	c.await(fmt.Sprint(ids, " to be done"), func() bool {
		done := c.times(&c.done)
		for _, id := range ids {
			if done[id] == 0 {
				return false
			}
		}
		return true
	})
}

// publishEach publishes messages of a Key each, and returns their IDs.
func (f *fake) publishEach(t *testing.T, from, count int) (ids []string) {
	t.Helper()
	p := f.publisher(t)
	for n := from; n < from+count; n++ {
		id := fmt.Sprint("m", n)
		publish(t, p, broker.Message{Source: "shop", ID: id, Type: "paid", Key: fmt.Sprint("order-", n)})
		ids = append(ids, id)
	}
	return ids
}

// awaitCommit waits until the only partition has that offset committed.
func (f *fake) awaitCommit(t *testing.T, offset int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	last := int64(-1)
	_, err := f.WaitGroupInfo(ctx, f.topic, func(g *kfake.GroupInfo) bool {
		if g == nil {
			return false
		}
		if commit, ok := g.Commits[f.topic][0]; ok {
			last = commit.Offset
		}
		return last == offset
	})
	if err != nil {
		t.Fatalf("offset %d is committed at last, want %d: %v", last, offset, err)
	}
}

func TestAMessageThatFailsDelaysNoOtherAndIsNotCommitted(t *testing.T) {
	t.Parallel()
	f := startFakeWith(t, 1)
	ids := f.publishEach(t, 0, 10)
	handle := func(fails bool) broker.Handle {
		return func(_ context.Context, m broker.Message) error {
			if fails && m.ID == "m3" {
				return errors.New("not yet")
			}
			return nil
		}
	}
	c := f.consume(t, handle(true))
	c.awaitDone("m0", "m1", "m2", "m4", "m5", "m6", "m7", "m8", "m9")
	f.awaitCommit(t, 3)
	more := f.publishEach(t, 10, 100)
	c.awaitDone(more...)
	c.stop()
	f.awaitCommit(t, 3)
	if done := c.times(&c.done); done["m3"] > 0 || len(done) != 109 {
		t.Errorf("%d messages are done, m3 %d times; want all others", len(done), done["m3"])
	}

	c = f.consume(t, handle(false))
	c.awaitDone(append(ids[3:], more...)...)
	f.awaitCommit(t, 110)
	if again := c.times(&c.begun); again["m2"] > 0 || len(again) != 107 {
		t.Errorf("%d messages came again, want the 107 from the first that was not done on", len(again))
	}
}

func TestMessagesOfAKeyAreHandledInOrderAndOneByOne(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	p := f.publisher(t)
	var last string
	want := map[string][]int{}
	for n := range 20 {
		for k := range 6 {
			m := broker.Message{Source: "shop", ID: fmt.Sprint(k, "/", n), Type: "paid", Key: fmt.Sprint("order-", k)}
			publish(t, p, m)
			want[m.Key] = append(want[m.Key], n)
			last = m.ID
		}
	}
	var mu sync.Mutex
	running, failed, got := map[string]bool{}, map[string]bool{}, map[string][]int{}
	c := f.consume(t, func(_ context.Context, m broker.Message) error {
		mu.Lock()
		defer mu.Unlock()
		if running[m.Key] {
			t.Errorf("two messages of %s are handled at once", m.Key)
		}
		running[m.Key] = true
		mu.Unlock()
		var k, n int
		_, err := fmt.Sscanf(m.ID, "%d/%d", &k, &n)
		mu.Lock()
		delete(running, m.Key)
		if n%7 == k && !failed[m.ID] {
			failed[m.ID] = true
			return errors.New("not yet")
		}
		got[m.Key] = append(got[m.Key], n)
		return err
	})
	c.await("all", func() bool { return len(c.times(&c.done)) == 120 })
	c.stop()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("until %s:\n%s", last, diff)
	}
}

func TestShutdownCommitsWhatIsDoneAndLeavesTheGroup(t *testing.T) {
	t.Parallel()
	f := startFakeWith(t, 1)
	ids := f.publishEach(t, 0, 30)
	c := f.consume(t, func(context.Context, broker.Message) error { return nil })
	c.awaitDone(ids...)
	c.stop() // soon after the last, so before its next commit
	group := f.GroupInfo(f.topic)
	if group.Commits[f.topic][0].Offset != 30 || len(group.Members) != 0 {
		t.Errorf("after Consume offset %d is committed, and the group has %d members; want 30 and none", group.Commits[f.topic][0].Offset, len(group.Members))
	}
}

func TestShutdownEndsWhileTheBrokersHang(t *testing.T) {
	t.Parallel()
	f := startFakeWith(t, 1)
	ids := f.publishEach(t, 0, 3)
	blocked := make(chan struct{})
	c := f.consume(t, func(_ context.Context, m broker.Message) error {
		if m.ID == "m2" {
			<-blocked
		}
		return nil
	})
	c.awaitDone(ids[:2]...)
	resume := f.hang(t)
	close(blocked)
	c.awaitDone(ids...)
	c.stop() // although the last offset cannot be committed
	resume()
	c = f.consume(t, func(context.Context, broker.Message) error { return nil })
	c.awaitDone("m2") // again
	f.awaitCommit(t, 3)
}

func TestNoMoreIsPolledThanHasRoom(t *testing.T) {
	t.Parallel()
	f := startFakeWith(t, 1)
	ids := f.publishEach(t, 0, 500)
	most := int64(0)
	var c *consumption
	started := make(chan struct{})
	var mu sync.Mutex
	c = f.consume(t, func(context.Context, broker.Message) error {
		<-started
		mu.Lock()
		defer mu.Unlock()
		polled := c.client.UncommittedOffsets()[f.topic][0].Offset
		most = max(most, polled-int64(len(c.times(&c.done))))
		return nil
	})
	close(started)
	c.awaitDone(ids...)
	c.stop()
	if most > 200 || most < 16 {
		t.Errorf("%d messages were polled and not done, want about 128 at most", most)
	}
}

func TestMessagesOfOthersHaveABody(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	other := newClient(t, kgo.SeedBrokers(f.addresses...))
	r := &kgo.Record{Topic: f.topic, Key: []byte("k"), Value: []byte("text"), Headers: []kgo.RecordHeader{{Key: "content-type", Value: []byte("text/plain")}}}
	if err := other.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	got := make(chan broker.Message, 1)
	f.consume(t, func(_ context.Context, m broker.Message) error { got <- m; return nil })
	if diff := cmp.Diff(broker.Message{Body: []byte("text")}, brokertest.Next(t, got)); diff != "" {
		t.Error(diff)
	}
}

func TestAClientThatIsClosedEndsConsumeWithAnError(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.publishEach(t, 0, 1)
	client := newClient(t, consuming(f.topic, f.addresses...)...)
	handled := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- idemkafka.Consume(t.Context(), client, func(context.Context, broker.Message) error { handled <- struct{}{}; return nil })
	}()
	<-handled
	client.CloseAllowingRebalance()
	if err := brokertest.Next(t, ended); !errors.Is(err, kgo.ErrClientClosed) {
		t.Errorf("got %v, want %v", err, kgo.ErrClientClosed)
	}
}

// pollHook is a hook that panics when the client is polled for the first time.
type pollHook struct{ sync.Once }

func (h *pollHook) OnPollStart(context.Context) { h.Do(func() { panic("oops") }) }

func TestAHookThatPanicsEndsConsumeWithAnError(t *testing.T) {
	t.Parallel()
	f := startFakeWith(t, 1)
	client := newClient(t, append(consuming(f.topic, f.addresses...), kgo.WithHooks(&pollHook{}))...)
	err := idemkafka.Consume(t.Context(), client, func(context.Context, broker.Message) error { return nil })
	wantError(t, err, "oops")
}
