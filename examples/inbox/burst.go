package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// steps are the events of each payment, in the order in which they happen.
var steps = []asaas.EventType{
	asaas.EventPaymentCreated, asaas.EventPaymentUpdated, asaas.EventPaymentConfirmed, asaas.EventPaymentReceived,
}

// atOnce is the number of deliveries in flight at any time.
const atOnce = 64

// burst is a burst as Asaas sends it: the events of many payments at once, those of one
// payment one after the other, and of each payment one event again.
type burst struct {
	url      string
	payments [][][]byte // the bodies of their events
}

func newBurst(url string, payments int) *burst {
	b := &burst{url: url}
	day := time.Date(2026, time.November, 20, 9, 0, 0, 0, time.UTC)
	for n := range payments {
		var bodies [][]byte
		for i, step := range steps {
			bodies = append(bodies, asaastest.Event(step,
				asaastest.Set("id", fmt.Sprintf("evt_%d&%d", n, i)),
				asaastest.Set("dateCreated", day.Add(time.Duration(i)*time.Minute).Format(time.DateTime)),
				asaastest.Set("payment.id", paymentID(n)),
				asaastest.Set("payment.value", amount(n))))
		}
		b.payments = append(b.payments, bodies)
	}
	return b
}

func paymentID(n int) string { return fmt.Sprintf("pay_1_a1B2c3D4%06d", n) }

func amount(n int) asaas.Money { return asaas.Cents(int64(1000 + n)) }

// send delivers the burst, and returns how long each answer took.
func (b *burst) send(ctx context.Context) ([]time.Duration, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: atOnce}
	defer transport.CloseIdleConnections()
	client := &http.Client{Timeout: 10 * time.Second, Transport: transport} // as long as Asaas waits
	var (
		next    = make(chan int)
		answers = make([][]time.Duration, atOnce)
		senders sync.WaitGroup
	)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for s := range atOnce {
		senders.Go(func() {
			for n := range next {
				for _, body := range append(slices.Clone(b.payments[n]), b.payments[n][n%len(steps)]) {
					took, err := b.deliver(ctx, client, body)
					if err != nil {
						cancel(err) // the burst has failed
						return
					}
					answers[s] = append(answers[s], took)
				}
			}
		})
	}
	b.handOut(ctx, next)
	senders.Wait()
	return slices.Concat(answers...), context.Cause(ctx)
}

// handOut gives the payments to the senders.
func (b *burst) handOut(ctx context.Context, next chan<- int) {
	defer close(next)
	for n := range b.payments {
		select {
		case next <- n:
		case <-ctx.Done():
			return
		}
	}
}

func (b *burst) deliver(ctx context.Context, client *http.Client, body []byte) (took time.Duration, err error) {
	start := time.Now()
	answer, err := client.Do(asaastest.Request(b.url, token, body).WithContext(ctx))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil { // an answer that is read whole frees its connection
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("a delivery was answered %s, should be 200", answer.Status)
	}
	return time.Since(start), nil
}
