package idem

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// UnreadableType is the Type of a genuine delivery whose body names no event, because something in front of the
// receiver has cut, compressed, encoded or wrapped the body. The body is stored as it came, and the event is
// parked; its error describes the body. Sources are not asked for a handler of this type.
//
// Each delivery is an event with an ID of its own, "unreadable-…", because different bodies may have been altered
// to the same one. A replay parks the event again. Have the provider deliver it anew, then discard it.
const UnreadableType = store.UnreadableType

// Why a delivery with the right token or secret was not stored: the reasons of package health's check
// "deliveries", and of the answer.
const (
	ReasonEmptyBody Reason = "empty_body"     // something in front has read it
	ReasonLargeBody Reason = "body_too_large" // larger than MaxBody
	ReasonCutBody   Reason = "body_not_whole" // the connection ended before the body did
)

// ReasonChangedBody is the reason in the answer to a dry run whose body is not the one that was sent.
const ReasonChangedBody Reason = "body_changed"

// ReadBody reads the body of a delivery, for [Source.Open]. Return its error as it is, or wrapped: the answer
// is 413 if the body is larger than MaxBody, and otherwise 503. Package health counts it as a failed delivery
// of the provider's. A source that verifies the body, not the headers, returns an Altered [*Refusal] in its
// place: a stranger may have sent it.
func ReadBody(r *http.Request) ([]byte, error) {
	if b, ok := r.Body.(limitedBody); ok && r.ContentLength > b.limit {
		return nil, tooLarge(b.limit) // without waiting for the body
	}
	body, err := io.ReadAll(r.Body)
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		return nil, tooLarge(limit.Limit)
	case err != nil:
		return nil, &rejection{status: http.StatusServiceUnavailable, reason: ReasonCutBody, says: "the body did not arrive whole", cause: err}
	}
	return body, nil
}

// limitedBody is a body that returns at most limit bytes.
type limitedBody struct {
	io.ReadCloser
	limit int64
}

func tooLarge(limit int64) error {
	return &rejection{
		status: http.StatusRequestEntityTooLarge, reason: ReasonLargeBody,
		says: fmt.Sprintf("the body is larger than %d bytes: raise MaxBody if it is genuine", limit),
	}
}

// rejection is the error of a request that cannot be stored, with the status of the answer.
type rejection struct {
	status int
	reason Reason // "" for a request that no provider makes
	says   string // the fault and the remedy; no data of the request
	cause  error
}

func (r *rejection) Error() string {
	if r.cause != nil {
		return "idem: " + r.says + ": " + r.cause.Error()
	}
	return "idem: " + r.says
}

// checkBody returns an error for an event without a name and with an empty body, or white space: it must be delivered
// again.
func checkBody(e Event) error {
	if e.Type != "" || len(bytes.TrimSpace(e.Payload)) > 0 {
		return nil
	}
	return &rejection{
		status: http.StatusServiceUnavailable, reason: ReasonEmptyBody,
		says: "the body is empty: something in front of the receiver has read it, a middleware that logs bodies for example: " +
			"have it put the body back, r.Body = io.NopCloser(bytes.NewReader(body)), or run after the receiver",
	}
}

// unreadable is the error of a body that names no event.
func unreadable(body []byte) error {
	return fmt.Errorf("idem: the body is not an event, it is %s: if the provider did not send it so, something in front of the receiver has changed it; "+
		"have that pass bodies on unchanged, have the provider deliver the event again, and discard this one", look(body))
}

// look names the form of a body that names no event, without any of its content.
func look(body []byte) string {
	text := bytes.TrimSpace(body)
	begins := func(with string) bool { return bytes.HasPrefix(text, []byte(with)) }
	switch {
	case len(text) == 0:
		return "empty"
	case begins("\x1f\x8b"):
		return "compressed (gzip)"
	case begins("\xff\xfe"), begins("\xfe\xff"), bytes.IndexByte(text[:min(2, len(text))], 0) >= 0:
		return "text in UTF-16, or binary"
	case begins("\xef\xbb\xbf"):
		return "text behind a byte order mark"
	case begins("<"):
		return "a page of HTML or XML"
	case begins("{") && json.Valid(text):
		return "a JSON object without an event's name, as an envelope is"
	case begins("[") && json.Valid(text):
		return "a JSON array"
	case begins(`"`) && json.Valid(text):
		return "a JSON string"
	case begins("{"), begins("["), begins(`"`):
		return "JSON that is not whole, or more than one value"
	case isBase64(string(text)):
		return "in base64"
	case isForm(string(text)):
		return "a form"
	}
	return "no JSON object"
}

func isBase64(text string) bool {
	const shortest = 16
	text = strings.TrimRight(text, "=")
	_, standard := base64.RawStdEncoding.DecodeString(text)
	_, forURLs := base64.RawURLEncoding.DecodeString(text)
	return len(text) >= shortest && (standard == nil || forURLs == nil)
}

func isForm(text string) bool {
	_, err := url.ParseQuery(text)
	return err == nil && strings.Contains(text, "=") && !strings.ContainsAny(text, " \n{}\"")
}
