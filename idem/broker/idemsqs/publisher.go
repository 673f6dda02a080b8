package idemsqs

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/paghooks/paghooks/idem/broker"
)

// Publisher publishes messages to a queue.
type Publisher struct {
	client *sqs.Client
	url    string
	fifo   bool
}

var _ broker.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher to the queue with that URL. If its name ends with
// .fifo it keeps the order of the messages of each Key.
func NewPublisher(client *sqs.Client, queueURL string) *Publisher {
	return &Publisher{client, queueURL, strings.HasSuffix(queueURL, ".fifo")}
}

// Publish implements [broker.Publisher]: it returns nil once SQS has stored the message in
// several places. A FIFO queue drops one with the same Source and ID as another of the
// last five minutes; then it returns nil, too.
//
// It returns an error immediately if the message is larger than 1 MiB with its
// attributes. A body that is no text, or has characters that SQS does not take, grows by
// a third: it is encoded with base64.
func (p *Publisher) Publish(ctx context.Context, m broker.Message) error {
	in := p.request(m)
	if n := size(in); n > maxSize { // without the megabyte's way to SQS and back
		return fmt.Errorf("idemsqs: %s %s is not published: %w: its %d bytes, with the attributes, are more than the %d that SQS takes: lower the relay's MaxBody", m.Type, m.ID, broker.ErrTooLarge, n, maxSize)
	}
	if _, err := p.client.SendMessage(ctx, in); err != nil {
		return fmt.Errorf("idemsqs: %s %s is not published: %w", m.Type, m.ID, explain(err))
	}
	return nil
}

// maxSize is the size of the largest message. The queue's MaximumMessageSize may be less.
const maxSize = 1 << 20

// explain adds a remedy to an error of SQS.
func explain(err error) error {
	if _, ok := errors.AsType[*types.QueueDoesNotExist](err); ok {
		return fmt.Errorf("%w: create it, or correct its URL: %w", broker.ErrNoQueue, err)
	}
	if strings.Contains(err.Error(), "must be shorter than") { // its code is that of any invalid parameter
		return fmt.Errorf("%w for the queue: raise its MaximumMessageSize: %w", broker.ErrTooLarge, err)
	}
	return err
}

// Check asks SQS whether a message that it has confirmed can be lost. It returns an error
// that names each thing that would lose messages and the change that prevents it, or that SQS did not
// tell. It changes nothing. Call it once at the start, and log the error, or stop.
//
// It names a queue that does not exist, one that keeps messages for less than 4 days, in
// which Postgres may be unavailable, and one that moves a message to a dead letter queue
// after fewer than 100 deliveries. The client needs the right sqs:GetQueueAttributes.
func (p *Publisher) Check(ctx context.Context) error {
	out, err := p.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &p.url,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameMessageRetentionPeriod, types.QueueAttributeNameRedrivePolicy},
	})
	if err != nil {
		return fmt.Errorf("idemsqs: asking for the attributes of queue %s: %w", p.url, explain(err))
	}
	return errors.Join(
		p.checkRetention(out.Attributes[string(types.QueueAttributeNameMessageRetentionPeriod)]),
		p.checkRedrive(out.Attributes[string(types.QueueAttributeNameRedrivePolicy)]),
	)
}

// longOutage is the shortest time for which a queue should keep messages: Postgres may be
// unavailable for a long weekend. It is SQS's default.
const longOutage = 4 * 24 * time.Hour

func (p *Publisher) checkRetention(attribute string) error {
	seconds, err := strconv.Atoi(attribute)
	if err != nil {
		return fmt.Errorf("idemsqs: SQS does not tell the MessageRetentionPeriod of queue %s: %w", p.url, err)
	}
	if kept := time.Duration(seconds) * time.Second; kept < longOutage {
		return fmt.Errorf("idemsqs: queue %s deletes messages after %s, consumed or not: set its MessageRetentionPeriod to how long Postgres may be unavailable, which is 4 days (%d) at least", p.url, kept, int(longOutage.Seconds()))
	}
	return nil
}

// enoughReceives is the number of deliveries that suffice for a message while its consumers are killed.
const enoughReceives = 100

func (p *Publisher) checkRedrive(attribute string) error {
	if attribute == "" {
		return nil
	}
	var policy struct {
		MaxReceiveCount json.Number `json:"maxReceiveCount"` // SQS takes it as a string, too
	}
	err := json.Unmarshal([]byte(attribute), &policy)
	receives, numberErr := cmp.Or(policy.MaxReceiveCount, "10").Int64() // the default
	if err = errors.Join(err, numberErr); err != nil {
		return fmt.Errorf("idemsqs: the RedrivePolicy of queue %s cannot be read: %w", p.url, err)
	}
	if receives < enoughReceives {
		return fmt.Errorf("idemsqs: queue %s moves messages to a dead letter queue after %d deliveries, also because consumers were restarted: remove its RedrivePolicy, or set its maxReceiveCount to %d or more, and have an alarm on the dead letter queue", p.url, receives, enoughReceives)
	}
	return nil
}

// prefix begins the names of message attributes with a CloudEvent's attributes.
const prefix = "ce-"

// The attribute that says how the body is encoded: without it, the body is as it is.
const (
	encodingAttribute = "contentencoding"
	encodingBase64    = "base64"
)

// request is the message as it is sent.
func (p *Publisher) request(m broker.Message) *sqs.SendMessageInput {
	in := &sqs.SendMessageInput{QueueUrl: &p.url, MessageAttributes: map[string]types.MessageAttributeValue{}}
	for name, value := range m.CloudEvent() {
		if value != "" { // SQS takes no empty ones
			in.MessageAttributes[prefix+name] = attribute(value)
		}
	}
	if body := string(m.Body); isText(body) {
		in.MessageBody = &body
	} else {
		in.MessageBody = new(" " + base64.StdEncoding.EncodeToString(m.Body)) // never empty
		in.MessageAttributes[encodingAttribute] = attribute(encodingBase64)
	}
	if p.fifo {
		id := rand.Text()
		if m.ID != "" {
			id = hash(m.Source + "\x00" + m.ID)
		}
		group := id
		if m.Key != "" {
			group = hash(m.Source + "\x00" + m.Key)
		}
		in.MessageGroupId, in.MessageDeduplicationId = &group, &id
	}
	return in
}

// hash is of the form that SQS wants, for any text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func attribute(value string) types.MessageAttributeValue {
	if isText(value) {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	return types.MessageAttributeValue{DataType: aws.String("Binary"), BinaryValue: []byte(value)}
}

// isText reports whether SQS takes a text as it is: it has the characters of XML, and one
// at least.
func isText(s string) bool {
	return s != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
	})
}

// size returns the size of a message as SQS counts it: the body, and the attributes' names, types and
// values.
func size(in *sqs.SendMessageInput) int {
	n := len(*in.MessageBody)
	for name, value := range in.MessageAttributes {
		n += len(name) + len(*value.DataType) + len(aws.ToString(value.StringValue)) + len(value.BinaryValue)
	}
	return n
}

// message returns the message that was sent, by this package or by others. A body that is not encoded as
// it says stays as it is.
func message(r types.Message) broker.Message {
	attributes := map[string]string{}
	for name, value := range r.MessageAttributes {
		if name, ok := strings.CutPrefix(name, prefix); ok {
			attributes[name] = aws.ToString(value.StringValue) + string(value.BinaryValue)
		}
	}
	body := []byte(aws.ToString(r.Body))
	if aws.ToString(r.MessageAttributes[encodingAttribute].StringValue) == encodingBase64 {
		if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(body))); err == nil {
			body = decoded
		}
	}
	m := broker.MessageOf(attributes, body)
	if m.ID == "" {
		m.ID = aws.ToString(r.MessageId)
	}
	return m
}
