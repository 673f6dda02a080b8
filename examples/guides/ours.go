package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// deliveries are the requests that handlers run for, by event.
type deliveries struct{ sync.Map }

// dispatcher has the handler of a request. A process that is killed has its connection cut.
func (d *deliveries) dispatcher() *asaas.Dispatcher {
	events := asaas.NewDispatcher()
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		found, _ := d.Load(e.ID)
		r := found.(*delivery)
		err := r.fault.step()
		if err == nil {
			err = r.handle(ctx, tx)
		}
		if errors.Is(err, errKilled) {
			_ = tx.Conn().Close(ctx)
		}
		return err
	})
	return events
}

// event is the body of a request.
func (r *delivery) event() idem.Event {
	id, _ := json.Marshal(r.id)
	return asaas.Identify([]byte(`{"id":` + string(id) + `,"event":"PAYMENT_RECEIVED","payment":{"id":"pay_` + r.id + `","value":29.90,"status":"RECEIVED"}}`))
}

func status(_ idem.Outcome, err error) int {
	if err != nil {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

func newProcessor(pool *pgxpool.Pool) func(*delivery) int {
	all := new(deliveries)
	p := idem.NewProcessor(pool, all.dispatcher())
	p.Logger = nil
	return func(r *delivery) int {
		all.Store(r.id, r)
		return status(p.Accept(r.request, r.event()))
	}
}

func inbox(pool *pgxpool.Pool) scheme {
	all := new(deliveries)
	i := idem.NewInbox(pool, all.dispatcher())
	i.Logger, i.Backoff = nil, func(int) time.Duration { return 0 }
	return scheme{
		name: "idem.Inbox",
		receive: func(r *delivery) int {
			answer := status(i.Accept(r.request, r.event()))
			if r.fault.step() != nil {
				return 0
			}
			return answer
		},
		work: func(r *delivery) error {
			all.Store(r.id, r)
			return i.Drain(r.ctx)
		},
	}
}
