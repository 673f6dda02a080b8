package asaastest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/fixture"
)

// delivery is one attempt, and its result.
type delivery struct {
	webhook *webhook
	event   *pending
	fault   Fault
	config  Webhook  // when the attempt began
	answers []answer // of the copies; the first counts
}

// answer is a receiver's; or the error instead of one.
type answer struct {
	status int
	body   []byte
	err    error
}

const maxAnswer = 4 << 10

func (f *Fake) newDelivery(w *webhook, p *pending) *delivery {
	fault := f.faults.Next()
	if fault.has(Swap) && w.SendType == Sequentially {
		p = w.overtake()
	}
	p.attempts++
	return &delivery{webhook: w, event: p, fault: fault, config: w.Webhook}
}

// deliver carries attempts out, all at once.
func (f *Fake) deliver(due []*delivery) {
	var attempts sync.WaitGroup
	for _, d := range due {
		attempts.Go(func() { f.attempt(d) })
	}
	attempts.Wait()
}

func (f *Fake) attempt(d *delivery) {
	post := func() answer { return f.post(d) }
	d.answers = fixture.Copies(post, d.fault.has(Concurrent), d.fault.has(Duplicate))
}

func (f *Fake) post(d *delivery) answer {
	ctx, cancel := context.WithTimeout(f.ctx, f.Timeout)
	defer cancel()
	r, err := d.request(ctx)
	if err != nil {
		return answer{err: err}
	}
	a, err := exchange(d.webhook.receiver.client(d.fault, int(r.ContentLength)), r)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s", f.Timeout)
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // without the URL
	}
	a.err = err
	return a
}

func exchange(client *http.Client, r *http.Request) (answer, error) {
	resp, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return answer{status: resp.StatusCode, body: body}, err
}

// request is a request as Asaas was seen to send it.
func (d *delivery) request(ctx context.Context) (*http.Request, error) {
	body, contentType := d.event.event.body, "application/json"
	if d.config.APIVersion == 2 {
		body = []byte(url.Values{"data": {string(body)}}.Encode())
		contentType = "application/x-www-form-urlencoded; charset=UTF-8"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.config.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", fmt.Sprintf("Asaas_Hmlg/%d.0", d.config.APIVersion))
	r.Header.Set("Cache-Control", "no-cache")
	r.Header.Set("Pragma", "no-cache")
	if token := d.token(); token != "" && d.config.APIVersion != 2 {
		r.Header.Set(asaas.TokenHeader, token)
	}
	return r, nil
}

func (d *delivery) token() string {
	if d.fault.has(WrongToken) {
		return "not-the-token-of-this-webhook"
	}
	return d.config.Token
}

// conclude takes the answers down, in the order of the queue.
func (f *Fake) conclude(due []*delivery) {
	f.change(func() {
		for _, d := range due {
			f.count(d)
			for _, a := range d.answers[1:] {
				e := d.entry(a)
				e.Kind = Copied
				f.record(d.webhook, d.event, e)
			}
		}
	})
}

// count lets the first answer count.
func (f *Fake) count(d *delivery) {
	a := d.answers[0]
	e := d.entry(a)
	switch {
	case d.fault.has(LostAnswer) && a.err == nil:
		e.Error = "the answer was lost"
		f.failed(d.webhook, d.event, e)
	case a.err == nil && f.isSuccess(a.status):
		f.succeeded(d.webhook, d.event, e)
	default:
		f.failed(d.webhook, d.event, e)
	}
}

func (f *Fake) isSuccess(status int) bool {
	return status == http.StatusOK || f.Accept2xx && status/100 == 2
}

func (d *delivery) entry(a answer) Entry {
	e := Entry{Status: a.status, Answer: string(a.body), Fault: d.fault}
	if a.err != nil {
		e.Error = a.err.Error()
	}
	return e
}
