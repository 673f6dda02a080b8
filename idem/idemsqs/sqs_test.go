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
	"github.com/paghooks/paghooks/idem/idemsqs"
	"github.com/paghooks/paghooks/idem/idemsqs/sqstest"
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
		endpoint = server.URL()
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
