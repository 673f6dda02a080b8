package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"sync"
)

// provider delivers webhooks as Asaas and Zelta Pay do.
type provider struct {
	client *http.Client
	url    string
}

// deliver delivers a message so many times, and returns the answers' statuses.
func (p provider) deliver(ctx context.Context, m message, t times) ([]int, error) {
	if t.atOnce {
		return p.atOnce(ctx, m, t.n)
	}
	statuses := make([]int, t.n)
	for i := range statuses {
		var err error
		if statuses[i], err = p.post(ctx, m); err != nil {
			return nil, err
		}
	}
	return statuses, nil
}

func (p provider) atOnce(ctx context.Context, m message, n int) ([]int, error) {
	statuses, errs := make([]int, n), make([]error, n)
	start := make(chan struct{})
	var concurrent sync.WaitGroup
	for i := range n {
		concurrent.Go(func() {
			<-start
			statuses[i], errs[i] = p.post(ctx, m)
		})
	}
	close(start)
	concurrent.Wait()
	return statuses, cmp.Or(errs...)
}

func (p provider) post(ctx context.Context, m message) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+m.path, bytes.NewReader(m.body))
	if err != nil {
		return 0, err
	}
	r.Header = m.header()
	answer, err := p.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body) // an answer that is read whole frees its connection
	return answer.StatusCode, err
}
