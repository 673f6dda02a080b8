package idemsqs_test

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// batchOf is a request with one message.
func batchOf(url, body string, attributes map[string]string) *sqs.SendMessageBatchInput {
	e := types.SendMessageBatchRequestEntry{Id: aws.String("1"), MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{}}
	for name, value := range attributes {
		e.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	return &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{e}}
}
