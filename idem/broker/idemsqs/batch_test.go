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
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/idemsqs/sqstest"
)

func TestNobodyWaitsForARequestThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent, ended := 0, 0
		b := broker.Batcher[int]{Send: limited(func(ctx context.Context, batch []int) []error {
			sent += len(batch)
			<-ctx.Done()
			ended++
			return fill(len(batch), ctx.Err())
		})}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := b.Do(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("sending ended with %v", err)
			}
			cancel()
		}
		time.Sleep(sendTime)
		synctest.Wait()
		if sent != 1 || ended != 1 {
			t.Errorf("%d items were sent, %d requests have ended: want the first item only, and its request", sent, ended)
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

// Credentials, and other options of a client, are the application's own.
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
