package asaas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// call does an operation and decodes the answer. A nil answer means that none
// is wanted: only 204 is success then, which no captive portal answers.
func (c *Client) call(ctx context.Context, o operation, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	o.token = secretIn(o.body)
	failed := c.attempt(ctx, o, answer)
	for _, pause := range pauses {
		if failed == nil || o.method != http.MethodGet {
			break
		}
		switch {
		case failed.isPause():
			pause = failed.RetryAfter
		case !failed.passing:
			return failed
		}
		if !c.pause(ctx, pause) {
			break
		}
		failed = c.attempt(ctx, o, answer)
	}
	if failed != nil {
		return failed
	}
	return nil
}

// pauses are the waits before a call that only reads is sent again.
var pauses = []time.Duration{500 * time.Millisecond, 2 * time.Second}

// send does an operation that is answered with JSON.
func send[T any](ctx context.Context, c *Client, o operation) (*T, error) {
	answer := new(T)
	if err := c.call(ctx, o, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// attempt sends an operation once.
func (c *Client) attempt(ctx context.Context, o operation, answer any) *APIError {
	f := failure{o, c.key}
	r, err := c.request(ctx, o)
	if err != nil {
		return f.refused(err)
	}
	if err := ctx.Err(); err != nil {
		return f.refused(err)
	}
	var conn connection
	response, err := c.sender().Do(conn.watch(r))
	if err != nil {
		return f.unanswered(err, conn.none())
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("it is larger than %d bytes", maxAnswer)
	}
	a := answered{status: response.StatusCode, header: response.Header, body: body, err: err}
	if a.status/100 != 2 {
		return f.declined(a)
	}
	if err := a.decode(answer); err != nil {
		return f.unreadable(a, err)
	}
	return nil
}

// pause waits, if that fits into the time there is.
func (c *Client) pause(ctx context.Context, d time.Duration) bool {
	deadline, _ := ctx.Deadline()
	return d < time.Until(deadline) && c.wait(ctx, d) == nil
}

// wait returns an error if ctx ends before.
func (c *Client) wait(ctx context.Context, d time.Duration) error {
	if c.Wait != nil {
		return c.Wait(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ended returns the cause for which ctx has ended, in words: its time was over, or somebody ended it.
func ended(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "the time was over"
	}
	return "it was interrupted"
}
