package idemsqs_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/idemsqs"
	"github.com/paghooks/paghooks/idem/broker/idemsqs/sqstest"
)

func Example() {
	server := sqstest.NewServer() // instead of AWS
	defer server.Close()
	client := sqs.New(sqs.Options{
		BaseEndpoint: aws.String(server.URL),
		Region:       "sa-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: aws.String("webhooks.fifo"), Attributes: map[string]string{"FifoQueue": "true", "MessageRetentionPeriod": "1209600"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	publisher := idemsqs.NewPublisher(client, *queue.QueueUrl) // for relay.New or outbox.New
	for _, id := range []string{"1", "1", "2"} {
		if err := publisher.Publish(ctx, broker.Message{Source: "shop", ID: id, Type: "order.paid", Key: "order 7"}); err != nil {
			fmt.Println(err)
		}
	}
	err = idemsqs.Consume(ctx, client, *queue.QueueUrl, func(_ context.Context, m broker.Message) error { // or relay.To(inbox, secret)
		fmt.Println(m.ID, m.Type, m.Key)
		if m.ID == "2" {
			cancel()
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1 order.paid order 7
	// 2 order.paid order 7
	// <nil>
}
