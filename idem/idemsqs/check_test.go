package idemsqs_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/paghooks/paghooks/idem/idemsqs"
	"github.com/paghooks/paghooks/idem/idemsqs/sqstest"
)

func TestCheckNamesWhatWouldLoseConfirmedMessages(t *testing.T) {
	t.Parallel()
	server := sqstest.NewServer()
	t.Cleanup(server.Close)
	client := newClient(server.URL())
	for name, c := range map[string]struct {
		attributes map[string]string // nil for no queue
		want       []string
	}{
		"defaults":             {map[string]string{}, nil},
		"for-two-weeks":        {map[string]string{"MessageRetentionPeriod": "1209600"}, nil},
		"for-an-hour":          {map[string]string{"MessageRetentionPeriod": "3600"}, []string{"after 1h0m0s"}},
		"after-many-receives":  {map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn","maxReceiveCount":100}`}, nil},
		"after-a-few-receives": {map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn","maxReceiveCount":"99"}`}, []string{"after 99 deliveries"}},
		"after-the-default":    {map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn"}`}, []string{"after 10 deliveries"}},
		"unreadable":           {map[string]string{"RedrivePolicy": `many`}, []string{"cannot be read"}},
		"both": {
			map[string]string{"MessageRetentionPeriod": "60", "RedrivePolicy": `{"deadLetterTargetArn":"arn","maxReceiveCount":3}`},
			[]string{"after 1m0s", "after 3 deliveries"},
		},
		"absent": {nil, []string{"there is no such queue: create it"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.attributes != nil {
				if _, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: c.attributes}); err != nil {
					t.Fatal(err)
				}
			}
			err := idemsqs.NewPublisher(client, server.URL()+"/000000000000/"+name).Check(t.Context())
			if c.want == nil && err != nil {
				t.Errorf("Check returned %v, want nil", err)
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Check returned %v, want %q", err, want)
				}
			}
			if err != nil && strings.Count(err.Error(), "idemsqs: ") != len(c.want) {
				t.Errorf("Check returned %v, want %d things", err, len(c.want))
			}
		})
	}
}

func TestCheckEndsWithItsContextWhileSQSHangs(t *testing.T) {
	t.Parallel()
	server := sqstest.NewServer()
	t.Cleanup(server.Close)
	resume := server.Hang()
	defer resume()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := idemsqs.NewPublisher(newClient(server.URL()), server.URL()+"/0/q").Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Check returned %v, want its context's error", err)
	}
}
