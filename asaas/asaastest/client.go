package asaastest

import (
	"context"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// Client returns a client of this fake's API, in the fake's time: where the
// client waits, the clock moves on by [Fake.Advance]. So [asaas.Recover] takes
// minutes of the fake's and none of the test's, and needs nothing else:
//
//	for progress, err := range asaas.Recover(ctx, fake.Client(), webhook, token) { … }
//
// The fake's own limit of removeBackoff takes the place of MinRemoveBackoff. It
// panics for an APIKey that is none.
func (f *Fake) Client() *asaas.Client {
	environment := asaas.Sandbox
	if isProduction(f.APIKey) {
		environment = asaas.Production
	}
	client, err := asaas.NewClient(environment, f.APIKey)
	if err != nil {
		panic("asaastest: " + err.Error())
	}
	client.Transport, client.Receiver = f.Transport(), receiverWay{f}
	client.MinRemoveBackoff = 0
	client.Wait = f.wait
	return client
}

// wait passes time on the fake's clock.
func (f *Fake) wait(ctx context.Context, d time.Duration) error {
	if ctx.Err() == nil {
		f.Advance(d)
	}
	return context.Cause(ctx)
}

// receiverWay takes requests to webhooks' URLs: where one has a Handler, there.
type receiverWay struct{ fake *Fake }

// RoundTrip implements [http.RoundTripper].
func (w receiverWay) RoundTrip(r *http.Request) (*http.Response, error) {
	return w.fake.receiverAt(r.URL.String()).RoundTrip(r)
}

func (f *Fake) receiverAt(url string) http.RoundTripper {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	for _, w := range f.webhooks {
		if w.URL == url {
			return w.receiver.sound
		}
	}
	return http.DefaultTransport
}
