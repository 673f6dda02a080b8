// Package sqstest has a server in this process that behaves as Amazon SQS does for the
// requests that package idemsqs makes, and a few more, over HTTP. It follows SQS's
// documentation; it does not know how AWS differs from that.
//
// A FIFO queue hands out the messages of a group in order, and none while one of them
// is in flight; it takes a deduplication ID again only after five minutes. Messages
// come again when their visibility time-out is over. There are no dead letter queues, and
// no message is deleted for its age: of the attributes of a queue that say so it only
// answers what they are.
package sqstest

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits of SQS.
const (
	MaxSize = 1 << 20 // of a message

	maxReceived   = 10
	maxAttributes = 10
	maxName       = 128
	dedupTime     = 5 * time.Minute
)

// Server is a server with its queues, which are in memory.
//
// The URL is the BaseEndpoint for a client. Any region and credentials will do.
type Server struct {
	*httptest.Server

	mu      sync.Mutex
	queues  map[string]*queue // by URL
	numbers int
	hung    chan struct{} // nil, or closed when requests are answered again
	changed chan struct{} // closed when a message may have become visible
}

type queue struct {
	fifo       bool
	attributes map[string]string
	visible    time.Duration
	messages   []*message
	duplicate  map[string]time.Time // when a deduplication ID was sent
}

type message struct {
	ID, Group, Dedup, Body string
	Attributes             map[string]attribute
	hidden                 time.Time // until then
	receipt                string
	receives               int
}

// attribute is a message attribute as SQS's JSON has it.
type attribute struct {
	DataType    string
	StringValue string `json:",omitempty"`
	BinaryValue []byte `json:",omitempty"`
}

// NewServer starts a server on loopback. Close it.
func NewServer() *Server {
	s := &Server{queues: map[string]*queue{}, changed: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Hang has requests wait for their answers until resume is called.
func (s *Server) Hang() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hung := make(chan struct{})
	s.hung = hung
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hung = nil
		close(hung)
	})
}

// failure is an error as SQS's JSON has it.
type failure struct {
	Type    string `json:"__type"`
	Message string `json:"message"`
}

func fail(code, format string, args ...any) *failure {
	return &failure{"com.amazonaws.sqs#" + code, fmt.Sprintf(format, args...)}
}

// request has the fields of all requests.
type request struct {
	QueueName, QueueUrl, ReceiptHandle                  string
	MessageBody, MessageGroupId, MessageDeduplicationId string
	MessageAttributes                                   map[string]attribute
	Attributes                                          map[string]string
	AttributeNames                                      []string
	MaxNumberOfMessages, WaitTimeSeconds                int
	VisibilityTimeout                                   *int
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hung := s.hung
	s.mu.Unlock()
	if hung != nil {
		select {
		case <-hung:
		case <-r.Context().Done():
			return
		}
	}
	var in request
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var out any
	f := fail("InvalidParameterValue", "the request is no JSON")
	if json.NewDecoder(r.Body).Decode(&in) == nil {
		out, f = s.answer(r, operation, in)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if f != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = f
	}
	_ = json.NewEncoder(w).Encode(out) // to a client that is there
}

func (s *Server) answer(r *http.Request, operation string, in request) (any, *failure) {
	if operation == "ReceiveMessage" {
		return s.receive(r, in)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if operation == "CreateQueue" {
		return s.create(in)
	}
	q := s.queues[in.QueueUrl]
	if q == nil {
		return nil, fail("QueueDoesNotExist", "The specified queue does not exist.")
	}
	switch operation {
	case "DeleteQueue":
		delete(s.queues, in.QueueUrl)
		return struct{}{}, nil
	case "GetQueueAttributes":
		named := maps.Clone(q.attributes)
		maps.DeleteFunc(named, func(name, _ string) bool { return !slices.Contains(in.AttributeNames, name) })
		return map[string]any{"Attributes": named}, nil
	case "SendMessage":
		return s.send(q, in)
	case "DeleteMessage":
		return struct{}{}, s.remove(q, in)
	case "ChangeMessageVisibility":
		return struct{}{}, s.show(q, in)
	}
	return nil, fail("UnsupportedOperation", "sqstest has no %s", operation)
}

func (s *Server) create(in request) (any, *failure) {
	q := &queue{fifo: in.Attributes["FifoQueue"] == "true", visible: 30 * time.Second, duplicate: map[string]time.Time{}}
	q.attributes = map[string]string{"MessageRetentionPeriod": "345600", "MaximumMessageSize": strconv.Itoa(MaxSize)} // the defaults
	maps.Copy(q.attributes, in.Attributes)
	if q.fifo != strings.HasSuffix(in.QueueName, ".fifo") {
		return nil, fail("InvalidParameterValue", "the name of a FIFO queue, and only that, ends with .fifo")
	}
	url := s.URL + "/000000000000/" + in.QueueName
	s.queues[url] = q
	return map[string]string{"QueueUrl": url}, nil
}

// send stores a message, unless it was sent before.
func (s *Server) send(q *queue, e request) (any, *failure) {
	limit, _ := strconv.Atoi(q.attributes["MaximumMessageSize"])
	size := len(e.MessageBody)
	for name, a := range e.MessageAttributes {
		size += len(name) + len(a.DataType) + len(a.StringValue) + len(a.BinaryValue)
	}
	switch {
	case size > limit:
		return nil, fail("InvalidParameterValue", "One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", limit)
	case e.MessageBody == "":
		return nil, fail("MissingParameter", "The request must contain the parameter MessageBody.")
	case strings.ContainsFunc(e.MessageBody, notXML):
		return nil, fail("InvalidMessageContents", "Invalid characters in the message body.")
	case len(e.MessageAttributes) > maxAttributes:
		return nil, fail("InvalidParameterValue", "Number of message attributes exceeds the allowed maximum.")
	case q.fifo && (e.MessageGroupId == "" || len(e.MessageGroupId) > maxName):
		return nil, fail("MissingParameter", "The request must contain the parameter MessageGroupId.")
	case q.fifo && (e.MessageDeduplicationId == "" || len(e.MessageDeduplicationId) > maxName):
		return nil, fail("InvalidParameterValue", "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
	}
	for name, a := range e.MessageAttributes {
		if a.StringValue == "" && len(a.BinaryValue) == 0 || strings.ContainsFunc(a.StringValue, notXML) {
			return nil, fail("InvalidParameterValue", "Message attribute %q must contain a non-empty value of its type.", name)
		}
	}
	s.numbers++
	m := &message{
		ID: strconv.Itoa(s.numbers), Group: e.MessageGroupId, Dedup: e.MessageDeduplicationId,
		Body: e.MessageBody, Attributes: e.MessageAttributes,
	}
	if sent, ok := q.duplicate[m.Dedup]; !q.fifo || !ok || time.Since(sent) > dedupTime {
		q.duplicate[m.Dedup] = time.Now()
		q.messages = append(q.messages, m)
		s.wake()
	}
	return map[string]string{"MessageId": m.ID, "MD5OfMessageBody": sum(m.Body)}, nil
}

func sum(text string) string {
	digest := md5.Sum([]byte(text))
	return hex.EncodeToString(digest[:])
}

// notXML reports whether SQS refuses a character.
func notXML(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

// wake has all requests that wait for messages look again.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// receive waits for messages, and hides them from others.
func (s *Server) receive(r *http.Request, in request) (any, *failure) {
	late := time.After(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		s.mu.Lock()
		q := s.queues[in.QueueUrl]
		if q == nil {
			s.mu.Unlock()
			return nil, fail("QueueDoesNotExist", "The specified queue does not exist.")
		}
		out, soonest := s.take(q, in)
		changed := s.changed
		s.mu.Unlock()
		if len(out) > 0 {
			return map[string]any{"Messages": out}, nil
		}
		select {
		case <-changed:
		case <-time.After(soonest): // another consumer's message
		case <-late:
			return map[string]any{}, nil
		case <-r.Context().Done():
			return map[string]any{}, nil
		}
	}
}

// take takes up to 10 free messages, or says when one may be free.
func (s *Server) take(q *queue, in request) (out []any, soonest time.Duration) {
	now, soonest := time.Now(), time.Hour
	visible := q.visible
	if in.VisibilityTimeout != nil {
		visible = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	locked := map[string]bool{}
	for _, m := range q.messages {
		if m.hidden.After(now) {
			locked[m.Group] = q.fifo
			soonest = min(soonest, m.hidden.Sub(now))
		}
	}
	for _, m := range q.messages {
		if m.hidden.After(now) || locked[m.Group] || len(out) == max(1, min(in.MaxNumberOfMessages, maxReceived)) {
			continue
		}
		s.numbers++
		m.receives++
		m.hidden, m.receipt = now.Add(visible), m.ID+"/"+strconv.Itoa(s.numbers)
		system := map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.receives)}
		if q.fifo {
			system["MessageGroupId"] = m.Group
		}
		out = append(out, map[string]any{
			"MessageId": m.ID, "ReceiptHandle": m.receipt, "Body": m.Body, "MD5OfBody": sum(m.Body),
			"Attributes": system, "MessageAttributes": m.Attributes,
		})
	}
	return out, soonest
}

// find returns the message of a receipt.
func (q *queue) find(receipt string) *message {
	for _, m := range q.messages {
		if m.receipt == receipt {
			return m
		}
	}
	return nil
}

// remove deletes a message. A FIFO queue refuses an expired receipt.
func (s *Server) remove(q *queue, in request) *failure {
	m := q.find(in.ReceiptHandle)
	if q.fifo && (m == nil || m.hidden.Before(time.Now())) {
		return fail("InvalidParameterValue", "Value %s for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", in.ReceiptHandle)
	}
	q.messages = slices.DeleteFunc(q.messages, func(other *message) bool { return other == m })
	s.wake()
	return nil
}

// show changes when others see a message that is in flight.
func (s *Server) show(q *queue, in request) *failure {
	m := q.find(in.ReceiptHandle)
	switch {
	case m == nil:
		return fail("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
	case m.hidden.Before(time.Now()):
		return fail("MessageNotInflight", "The message referred to is not in flight.")
	}
	m.hidden = time.Now().Add(time.Duration(*in.VisibilityTimeout) * time.Second)
	s.wake()
	return nil
}
