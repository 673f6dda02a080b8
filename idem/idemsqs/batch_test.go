package idemsqs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/idemsqs/sqstest"
)

func TestWhatComesWhileRequestsAreInFlightSharesTheNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		requests, size, items int
		want                  []int // the sizes of the requests
	}{
		"alone":                      {2, 1, 1, []int{1}},
		"ten in a request":           {2, 1, 27, []int{1, 1, 10, 10, 5}},
		"no larger than a request":   {1, 40, 6, []int{1, 2, 2, 1}},
		"a large one goes by itself": {1, 100, 3, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var sizes []int
				release := make(chan struct{})
				g := &batcher[int]{requests: c.requests, maxSize: 100, size: func(int) int { return c.size }}
				g.send = func(_ context.Context, batch []int) []error {
					sizes = append(sizes, len(batch))
					<-release
					return make([]error, len(batch))
				}
				var all sync.WaitGroup
				for n := range c.items {
					all.Go(func() {
						if err := g.do(t.Context(), n); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				for range c.want {
					release <- struct{}{}
					synctest.Wait()
				}
				all.Wait()
				if diff := cmp.Diff(c.want, sizes); diff != "" {
					t.Error("sizes of the requests (-want +got):\n" + diff)
				}
				if g.running != 0 || len(g.waiting) != 0 {
					t.Errorf("%d requests are running and %d items wait at the end", g.running, len(g.waiting))
				}
			})
		})
	}
}

func TestNobodyWaitsForARequestThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		g := &batcher[int]{requests: 1, maxSize: 100, size: func(int) int { return 1 }}
		g.send = func(ctx context.Context, batch []int) []error {
			sent += len(batch)
			<-ctx.Done()
			return fill(len(batch), ctx.Err())
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := g.do(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("sending ended with %v", err)
			}
			cancel()
		}
		time.Sleep(sendTime)
		synctest.Wait()
		if sent != 1 || g.running != 0 {
			t.Errorf("%d items were sent, %d requests are running: want the first item only, and none", sent, g.running)
		}
	})
}

func TestEachEntryOfARequestHasItsOwnResult(t *testing.T) {
	t.Parallel()
	ids := []string{"2", "0", "9", "none"}
	failed := []types.BatchResultErrorEntry{
		{Id: aws.String("1"), Code: aws.String("InvalidParameterValue"), Message: aws.String("One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.")},
		{Id: aws.String("3"), Code: aws.String("InternalError")},
	}
	var got []string
	for _, err := range results(5, len(ids), func(i int) string { return ids[i] }, failed) {
		if err == nil {
			got = append(got, "sent")
			continue
		}
		if large := strings.Contains(err.Error(), "large"); large != errors.Is(err, broker.ErrTooLarge) {
			t.Errorf("that %v has broker.ErrTooLarge is %v", err, !large)
		}
		text, _, _ := strings.Cut(err.Error(), ":")
		got = append(got, text)
	}
	want := []string{"sent", "the message is too large for the queue", "sent", "SQS says InternalError", "SQS has not answered for it"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("results (-want +got):\n" + diff)
	}
}

// A region, or a substitute for SQS, may take less at once than SQS says.
func TestARequestThatIsTooLongIsDivided(t *testing.T) {
	t.Parallel()
	server := sqstest.NewServer()
	t.Cleanup(server.Close)
	var requests []int
	strict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in struct{ Entries []json.RawMessage }
		_ = json.Unmarshal(body, &in)
		requests = append(requests, len(in.Entries))
		if len(in.Entries) > 1 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#BatchRequestTooLong","message":"too long"}`)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(strict.Close)
	client := sqs.New(sqs.Options{BaseEndpoint: &strict.URL, Region: "sa-east-1", Credentials: aws.AnonymousCredentials{}})
	out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")})
	if err != nil {
		t.Fatal(err)
	}
	requests = nil
	p := NewPublisher(client, *out.QueueUrl)
	batch := []types.SendMessageBatchRequestEntry{entry(broker.Message{Type: "a"}, false), entry(broker.Message{Type: "b"}, false), entry(broker.Message{Type: "c"}, false)}
	got := p.send(t.Context(), batch)
	if diff := cmp.Diff([]int{3, 1, 1, 1}, requests); diff != "" || errors.Join(got...) != nil || len(got) != 3 {
		t.Errorf("sending three messages ended with %v; entries in the requests (-want +got):\n%s", got, diff)
	}
}

// Credentials, and whatever else a client was given, are the application's own.
func TestAClientThatPanicsIsAnError(t *testing.T) {
	t.Parallel()
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://127.0.0.1:1"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { panic("no settings") }),
	})
	for range 2 {
		if err := NewPublisher(client, "http://127.0.0.1:1/0/q").Publish(t.Context(), broker.Message{Type: "x"}); err == nil {
			t.Error("the message is published")
		}
	}
}
