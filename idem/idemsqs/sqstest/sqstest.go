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
	"strings"
	"sync"
	"time"
)

// Limits of SQS.
const (
	MaxSize = 1 << 20 // of a message, and of a request with several

	maxEntries    = 10
	maxAttributes = 10
	maxName       = 128
	dedupTime     = 5 * time.Minute
)

// Server is a server with its queues, which are in memory.
type Server struct {
	http *httptest.Server

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
	s.http = httptest.NewServer(s)
	return s
}

// URL is the BaseEndpoint for a client. Any region and credentials will do.
func (s *Server) URL() string { return s.http.URL }

// Close stops the server.
func (s *Server) Close() { s.http.Close() }

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
	QueueName, QueueUrl, ReceiptHandle string
	Attributes                         map[string]string
	AttributeNames                     []string
	Entries                            []entry
	MaxNumberOfMessages                int
	WaitTimeSeconds                    int
	VisibilityTimeout                  *int
}

type entry struct {
	Id, MessageBody, MessageGroupId, MessageDeduplicationId, ReceiptHandle string

	MessageAttributes map[string]attribute
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
		return map[string]any{"Attributes": q.named(in.AttributeNames)}, nil
	case "SendMessageBatch":
		return s.each(in, q.checkSend, s.send)
	case "DeleteMessageBatch":
		return s.each(in, nil, s.remove)
	case "ChangeMessageVisibility":
		return struct{}{}, s.show(q, in)
	}
	return nil, fail("UnsupportedOperation", "sqstest has no %s", operation)
}

func (s *Server) create(in request) (any, *failure) {
	q := &queue{fifo: in.Attributes["FifoQueue"] == "true", visible: 30 * time.Second, duplicate: map[string]time.Time{}}
	q.attributes = map[string]string{"MessageRetentionPeriod": "345600"} // the default
	maps.Copy(q.attributes, in.Attributes)
	if q.fifo != strings.HasSuffix(in.QueueName, ".fifo") {
		return nil, fail("InvalidParameterValue", "the name of a FIFO queue, and only that, ends with .fifo")
	}
	url := s.http.URL + "/000000000000/" + in.QueueName
	s.queues[url] = q
	return map[string]string{"QueueUrl": url}, nil
}

// named are the attributes with these names. Those that are not set are left out.
func (q *queue) named(names []string) map[string]string {
	out := map[string]string{}
	for name, value := range q.attributes {
		if slices.Contains(names, name) || slices.Contains(names, "All") {
			out[name] = value
		}
	}
	return out
}

// each does something with each entry of a batch.
func (s *Server) each(in request, check func([]entry) *failure, do func(*queue, entry) (map[string]any, *failure)) (any, *failure) {
	names := map[string]bool{}
	for _, e := range in.Entries {
		names[e.Id] = true
	}
	switch {
	case len(in.Entries) == 0:
		return nil, fail("EmptyBatchRequest", "There should be at least one entry in the request.")
	case len(in.Entries) > maxEntries:
		return nil, fail("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10.")
	case len(names) < len(in.Entries):
		return nil, fail("BatchEntryIdsNotDistinct", "Two or more batch entries in the request have the same Id.")
	}
	if check != nil {
		if f := check(in.Entries); f != nil {
			return nil, f
		}
	}
	successful, failed := []any{}, []any{}
	for _, e := range in.Entries {
		out, f := do(s.queues[in.QueueUrl], e)
		if f != nil {
			_, code, _ := strings.Cut(f.Type, "#")
			failed = append(failed, map[string]any{"Id": e.Id, "Code": code, "Message": f.Message, "SenderFault": true})
			continue
		}
		out["Id"] = e.Id
		successful = append(successful, out)
	}
	return map[string]any{"Successful": successful, "Failed": failed}, nil
}

func sum(text string) string {
	digest := md5.Sum([]byte(text))
	return hex.EncodeToString(digest[:])
}
