package idemsqs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/paghooks/paghooks/idem/broker"
)

// prefix begins the names of message attributes with a CloudEvent's attributes.
const prefix = "ce-"

// The attribute that says how the body is encoded: without it, the body is as it is.
const (
	encodingAttribute = "contentencoding"
	encodingBase64    = "base64"
)

// entry is the message as it is sent.
func entry(m broker.Message, fifo bool) types.SendMessageBatchRequestEntry {
	e := types.SendMessageBatchRequestEntry{MessageAttributes: map[string]types.MessageAttributeValue{}}
	for name, value := range m.CloudEvent() {
		if value != "" { // SQS takes no empty ones
			e.MessageAttributes[prefix+name] = attribute(value)
		}
	}
	if body := string(m.Body); isText(body) {
		e.MessageBody = &body
	} else {
		e.MessageBody = aws.String(" " + base64.StdEncoding.EncodeToString(m.Body)) // never empty
		e.MessageAttributes[encodingAttribute] = attribute(encodingBase64)
	}
	if fifo {
		id := rand.Text()
		if m.ID != "" {
			id = hash(m.Source + "\x00" + m.ID)
		}
		group := id
		if m.Key != "" {
			group = hash(m.Source + "\x00" + m.Key)
		}
		e.MessageGroupId, e.MessageDeduplicationId = &group, &id
	}
	return e
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
func size(e types.SendMessageBatchRequestEntry) int {
	n := len(*e.MessageBody)
	for name, value := range e.MessageAttributes {
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
