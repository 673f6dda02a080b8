package idem

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ReadBody reads the body of a delivery, for [Source.Open]. Its error is
// answered with 413 if the body is larger than MaxBody, and otherwise with 408: return
// it as it is, or wrapped.
func ReadBody(r *http.Request) ([]byte, error) {
	if b, ok := r.Body.(limitedBody); ok && r.ContentLength > b.limit {
		return nil, tooLarge(b.limit) // without waiting for it
	}
	body, err := io.ReadAll(r.Body)
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		return nil, tooLarge(limit.Limit)
	case err != nil:
		return nil, &rejection{http.StatusRequestTimeout, fmt.Errorf("idem: the body did not arrive whole: %w", err)}
	}
	return body, nil
}

// limitedBody is a body of which limit bytes are read.
type limitedBody struct {
	io.ReadCloser
	limit int64
}

func tooLarge(limit int64) error {
	return &rejection{
		http.StatusRequestEntityTooLarge,
		fmt.Errorf("idem: the body is larger than %d bytes: raise MaxBody if it is genuine", limit),
	}
}

// rejection is the reason for which a request is no delivery, with the status to answer.
type rejection struct {
	status int
	err    error
}

func (r *rejection) Error() string { return r.err.Error() }
func (r *rejection) Unwrap() error { return r.err }
