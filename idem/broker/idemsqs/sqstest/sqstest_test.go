package sqstest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paghooks/paghooks/idem/broker/idemsqs/sqstest"
)

// client is a client of a server of the test's own, with a queue.
type client struct {
	testing.TB
	*sqs.Client
	url string
}

func open(t testing.TB, name string) client {
	t.Helper()
	server := sqstest.NewServer()
	t.Cleanup(server.Close)
	c := client{TB: t, Client: sqs.New(sqs.Options{
		BaseEndpoint: aws.String(server.URL), Region: "sa-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})}
	in := &sqs.CreateQueueInput{QueueName: &name}
	if strings.HasSuffix(name, ".fifo") {
		in.Attributes = map[string]string{"FifoQueue": "true"}
	}
	out, err := c.CreateQueue(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	c.url = *out.QueueUrl
	return c
}

// send sends a message with that body for each name, "group/dedup".
func (c client) send(names ...string) {
	c.Helper()
	for _, name := range names {
		group, dedup, _ := strings.Cut(name, "/")
		_, err := c.SendMessage(c.Context(), &sqs.SendMessageInput{QueueUrl: &c.url, MessageBody: &name, MessageGroupId: &group, MessageDeduplicationId: &dedup})
		if err != nil {
			c.Fatal("sending ", name, ": ", err)
		}
	}
}

// receive returns up to so many messages, hidden for so many seconds, and their bodies.
func (c client) receive(most, hidden int32) (messages []types.Message, bodies string) {
	c.Helper()
	out, err := c.ReceiveMessage(c.Context(), &sqs.ReceiveMessageInput{QueueUrl: &c.url, MaxNumberOfMessages: most, VisibilityTimeout: hidden})
	if err != nil {
		c.Fatal(err)
	}
	var all []string
	for _, m := range out.Messages {
		all = append(all, *m.Body)
	}
	return out.Messages, strings.Join(all, " ")
}

func (c client) want(most, hidden int32, bodies string) []types.Message {
	c.Helper()
	messages, got := c.receive(most, hidden)
	if diff := cmp.Diff(bodies, got); diff != "" {
		c.Error("received (-want +got):\n" + diff)
	}
	return messages
}

func (c client) show(m types.Message, seconds int32) error {
	_, err := c.ChangeMessageVisibility(c.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &c.url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds})
	return err
}

func (c client) delete(m types.Message) error {
	_, err := c.DeleteMessage(c.Context(), &sqs.DeleteMessageInput{QueueUrl: &c.url, ReceiptHandle: m.ReceiptHandle})
	return err
}

func TestAGroupIsLockedWhileOneOfItsMessagesIsInFlight(t *testing.T) {
	t.Parallel()
	c := open(t, "q.fifo")
	c.send("a/1", "a/2", "b/4", "a/3")
	first := c.want(1, 30, "a/1")
	c.want(10, 30, "b/4")
	c.want(10, 30, "")
	if err := c.show(first[0], 0); err != nil { // given back
		t.Fatal(err)
	}
	all := c.want(2, 30, "a/1 a/2")
	if err := c.delete(all[0]); err != nil {
		t.Fatal(err)
	}
	c.want(10, 30, "") // a/2 is in flight
	if err := c.delete(all[1]); err != nil {
		t.Fatal(err)
	}
	c.want(10, 30, "a/3")
}

func TestAStandardQueueLocksNothingAndDropsNothing(t *testing.T) {
	t.Parallel()
	c := open(t, "q")
	c.send("a/1", "a/1", "a/2")
	c.want(1, 30, "a/1")
	c.want(10, 30, "a/1 a/2")
}

func TestWhatWasSentIsTakenAndDropped(t *testing.T) {
	t.Parallel()
	c := open(t, "q.fifo")
	c.send("a/1", "a/1")
	if err := c.delete(c.want(10, 30, "a/1")[0]); err != nil {
		t.Fatal(err)
	}
	c.send("a/1", "b/1", "a/2") // also after it was deleted, also in another group
	c.want(10, 30, "a/2")
}

func TestAMessageThatIsNotDeletedComesAgainAndItsReceiptIsNoMore(t *testing.T) {
	t.Parallel()
	c := open(t, "q.fifo")
	c.send("a/1")
	first := c.want(1, 1, "a/1")[0]
	out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{ // waits for it
		QueueUrl: &c.url, WaitTimeSeconds: 20, VisibilityTimeout: 30, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
	})
	if err != nil || len(out.Messages) != 1 || out.Messages[0].Attributes["ApproximateReceiveCount"] != "2" {
		t.Fatal("the message has not come for the second time: ", out, err)
	}
	if err := c.delete(first); err == nil {
		t.Error("the first receipt has deleted the message")
	}
	if err := c.show(first, 30); err == nil {
		t.Error("the first receipt has changed the visibility")
	}
	c.want(10, 30, "")
}

func TestWhatExceedsALimitIsRefused(t *testing.T) {
	t.Parallel()
	c := open(t, "q.fifo")
	for want, in := range map[string]sqs.SendMessageInput{
		"InvalidParameterValue":  {MessageBody: aws.String(strings.Repeat("x", sqstest.MaxSize+1)), MessageGroupId: aws.String("g")},
		"InvalidMessageContents": {MessageBody: aws.String("\x01"), MessageGroupId: aws.String("g")},
		"MissingParameter":       {MessageBody: aws.String("x")},
	} {
		in.QueueUrl, in.MessageDeduplicationId = &c.url, aws.String("d")
		_, err := c.SendMessage(t.Context(), &in)
		if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != want {
			t.Errorf("sending ended with %v, want %s", err, want)
		}
	}
	absent := "http://absent"
	if _, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &absent}); err == nil {
		t.Error("received from a queue that does not exist")
	}
}

func TestAQueueAnswersTheAttributesThatItWasMadeWith(t *testing.T) {
	t.Parallel()
	c := open(t, "q.fifo")
	for _, test := range []struct {
		asked []types.QueueAttributeName
		want  map[string]string
	}{
		{nil, nil},
		{[]types.QueueAttributeName{"FifoQueue", "RedrivePolicy"}, map[string]string{"FifoQueue": "true"}},
		{[]types.QueueAttributeName{"MessageRetentionPeriod"}, map[string]string{"MessageRetentionPeriod": "345600"}}, // the default
	} {
		out, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &c.url, AttributeNames: test.asked})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, out.Attributes, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("asked for %v (-want +got):\n%s", test.asked, diff)
		}
	}
}

func TestWhileItHangsNothingIsAnswered(t *testing.T) {
	t.Parallel()
	server := sqstest.NewServer()
	t.Cleanup(server.Close)
	resume := server.Hang()
	defer resume()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c := sqs.New(sqs.Options{BaseEndpoint: aws.String(server.URL), Region: "x", Credentials: aws.AnonymousCredentials{}})
	if _, err := c.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("q")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the request ended with %v", err)
	}
}
