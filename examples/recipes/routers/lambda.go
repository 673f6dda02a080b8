package routers

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/paghooks/paghooks/idem"
)

// Lambda runs the function: behind a function URL it receives, and by schedules it works.
func Lambda(inbox *idem.Inbox, scheduled bool) {
	inbox.PollOnly = true // nothing may be sent after the answer: the process stands still then
	if scheduled {
		lambda.Start(Work(inbox))
	} else {
		lambda.Start(Deliver(inbox))
	}
}

// Deliver answers a delivery that came to the function's URL, of InvokeMode BUFFERED.
func Deliver(receiver http.Handler) func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
	return func(ctx context.Context, e events.LambdaFunctionURLRequest) (answer events.LambdaFunctionURLResponse, err error) {
		body := io.Reader(strings.NewReader(e.Body))
		if e.IsBase64Encoded {
			body = base64.NewDecoder(base64.StdEncoding, body)
		}
		request := e.RequestContext.HTTP
		r, err := http.NewRequestWithContext(ctx, request.Method, "https://"+e.RequestContext.DomainName+e.RawPath, body)
		if err != nil {
			return answer, err
		}
		for name, value := range e.Headers {
			r.Header.Set(name, value)
		}
		r.RemoteAddr = net.JoinHostPort(request.SourceIP, "0") // for AllowFrom
		w := &response{status: http.StatusOK, header: make(http.Header)}
		receiver.ServeHTTP(w, r)
		headers := map[string]string{"Content-Type": w.header.Get("Content-Type")}
		return events.LambdaFunctionURLResponse{StatusCode: w.status, Headers: headers, Body: w.body.String()}, nil
	}
}

// response is an http.ResponseWriter in memory.
type response struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (w *response) Header() http.Header         { return w.header }
func (w *response) WriteHeader(status int)      { w.status = status }
func (w *response) Write(b []byte) (int, error) { return w.body.Write(b) }

// Task is the event of a schedule: {"do":"drain"} each minute, {"do":"prune"} each day.
type Task struct {
	Do string `json:"do"`
}

// Work does a task. It ends before the function's time is over, because AWS kills a process
// then, which counts as a crash of the events that it works on.
func Work(inbox *idem.Inbox) func(context.Context, Task) error {
	return func(ctx context.Context, task Task) error {
		if end, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, end.Add(-inbox.StopTimeout-3*time.Second))
			defer cancel()
		}
		switch task.Do {
		case "drain":
			err := inbox.Drain(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				return nil // the next run goes on
			}
			return err
		case "prune":
			_, err := inbox.Prune(ctx)
			return err
		}
		return fmt.Errorf("there is no task %q", task.Do)
	}
}
