package sqstest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkSend checks the limits of a request with messages.
func (q *queue) checkSend(entries []entry) *failure {
	size := 0
	for _, e := range entries {
		size += len(e.MessageBody)
		for name, a := range e.MessageAttributes {
			size += len(name) + len(a.DataType) + len(a.StringValue) + len(a.BinaryValue)
		}
	}
	if size > MaxSize {
		return fail("BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", MaxSize, size)
	}
	return nil
}

// send stores a message, unless it was sent before.
func (s *Server) send(q *queue, e entry) (map[string]any, *failure) {
	switch {
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
	return map[string]any{"MessageId": m.ID, "MD5OfMessageBody": sum(m.Body)}, nil
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
		if m.hidden.After(now) || locked[m.Group] || len(out) == max(1, min(in.MaxNumberOfMessages, maxEntries)) {
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
func (s *Server) remove(q *queue, e entry) (map[string]any, *failure) {
	m := q.find(e.ReceiptHandle)
	if q.fifo && (m == nil || m.hidden.Before(time.Now())) {
		return nil, fail("InvalidParameterValue", "Value %s for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", e.ReceiptHandle)
	}
	q.messages = slices.DeleteFunc(q.messages, func(other *message) bool { return other == m })
	s.wake()
	return map[string]any{}, nil
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
