package zeltapaytest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
)

// exchange sends a request to its receiver.
func (f *Fake) exchange(w *Webhook, r *http.Request) answer {
	if w.Handler != nil {
		return f.inProcess(w.Handler, r)
	}
	return f.overHTTP(r)
}

func (f *Fake) overHTTP(r *http.Request) answer {
	response, err := f.client.Do(r)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err // without the URL, which may hold a secret
	}
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	return answered(response)
}

// inProcess serves a request in this process, and waits for the answer as long as the request's context lasts.
func (f *Fake) inProcess(h http.Handler, r *http.Request) answer {
	r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "192.0.2.1:1234" // an address for documentation, RFC 5737
	done := make(chan answer, 1)
	f.begin(func() { serve(h, r, done) })
	select {
	case a := <-done:
		return a
	case <-r.Context().Done():
		return answer{err: r.Context().Err()}
	}
}

// begin runs a function that Close waits for, unless the fake is closed.
func (f *Fake) begin(work func()) {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	if f.ctx.Err() == nil {
		f.inFlight.Go(work)
	}
}

// serve answers even when the handler panics, or ends the goroutine as t.Fatal does.
func serve(h http.Handler, r *http.Request, done chan<- answer) {
	a := answer{err: errors.New("the handler ended without an answer")}
	defer func() {
		if p := recover(); p != nil {
			a.err = fmt.Errorf("the handler panicked: %v", p)
		}
		done <- a
	}()
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	a = answered(recorder.Result())
}
