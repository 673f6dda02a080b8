package idemsqs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
	"github.com/paghooks/paghooks/idem/broker/idemsqs"
	"github.com/paghooks/paghooks/idem/broker/idemsqs/sqstest"
)

// realRegion has the suite run against AWS: it names a region. The credentials come
// from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, and may create
// and delete queues with names that begin with idemsqs-.
const realRegion = "IDEMSQS_REGION"

// extendEvery is the interval at which the tests' consumers ask for more time.
const extendEvery = time.Second

func TestMain(m *testing.M) { brokertest.Main(m, openAddress) }

func TestFIFOQueue(t *testing.T) {
	t.Parallel()
	brokertest.Run(t, brokertest.Broker{Open: open(".fifo"), OpenOwn: open(".fifo")})
}

func TestStandardQueue(t *testing.T) {
	t.Parallel()
	brokertest.Run(t, brokertest.Broker{Open: open(""), OpenOwn: open("")})
}

// newClient returns a client: of AWS if the endpoint is empty.
func newClient(endpoint string) *sqs.Client {
	options := sqs.Options{
		Region: "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	}
	if endpoint != "" {
		options.BaseEndpoint = &endpoint
		return sqs.New(options)
	}
	options.Region = os.Getenv(realRegion)
	options.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{
			AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
		}, nil
	})
	return sqs.New(options)
}

// newQueue makes a queue on a server of the test's own, or on AWS.
func newQueue(t testing.TB, suffix string) (server *sqstest.Server, endpoint, url string) {
	t.Helper()
	if os.Getenv(realRegion) == "" {
		server = sqstest.NewServer()
		t.Cleanup(server.Close)
		endpoint = server.URL
	}
	client := newClient(endpoint)
	in := &sqs.CreateQueueInput{QueueName: aws.String(fmt.Sprintf("idemsqs-%d%s", time.Now().UnixNano(), suffix))}
	if suffix != "" {
		in.Attributes = map[string]string{"FifoQueue": "true"}
	}
	out, err := client.CreateQueue(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: out.QueueUrl}) })
	return server, endpoint, *out.QueueUrl
}

func open(suffix string) func(testing.TB) brokertest.Queue {
	return func(t testing.TB) brokertest.Queue {
		t.Helper()
		server, endpoint, url := newQueue(t, suffix)
		q := openQueue(endpoint, url)
		q.Address = url + " " + endpoint
		q.Ordered = suffix != ""
		q.Oversize = sqstest.MaxSize
		q.AckTimeout = 3 * extendEvery
		q.Nowhere = idemsqs.NewPublisher(newClient(endpoint), url+"-absent"+suffix)
		if server != nil {
			q.Hang = func(testing.TB) func() { return server.Hang() }
		}
		return q
	}
}

func openQueue(endpoint, url string) brokertest.Queue {
	client := newClient(endpoint)
	settings := broker.Consumer{ExtendEvery: extendEvery, Logger: slog.New(slog.DiscardHandler)}
	return brokertest.Queue{
		Publisher: idemsqs.NewPublisher(client, url),
		Consume: func(ctx context.Context, handle broker.Handle) error {
			return idemsqs.ConsumeWith(ctx, settings, client, url, handle)
		},
	}
}

// openAddress opens a queue of open's in another process.
func openAddress(address string) (q brokertest.Queue, err error) {
	url, endpoint, ok := strings.Cut(address, " ")
	if !ok {
		return q, errors.New("the address has no endpoint")
	}
	return openQueue(endpoint, url), nil
}

func TestCheckNamesWhatWouldLoseConfirmedMessages(t *testing.T) {
	t.Parallel()
	server := sqstest.NewServer()
	t.Cleanup(server.Close)
	client := newClient(server.URL)
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
			err := idemsqs.NewPublisher(client, server.URL+"/000000000000/"+name).Check(t.Context())
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
	if err := idemsqs.NewPublisher(newClient(server.URL), server.URL+"/0/q").Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Check returned %v, want its context's error", err)
	}
}
