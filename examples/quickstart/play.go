package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// play delivers the day's events to the shop, which serves at url, prints the answers
// and the content of its database in the end, and fails if anything of
// that is not as it should be.
func (s *shop) play(ctx context.Context, out io.Writer, url string) error {
	client := &http.Client{Timeout: 10 * time.Second, Transport: new(http.Transport)} // as long as Asaas waits
	defer client.CloseIdleConnections()
	start := time.Now()
	wrong, err := s.playDay(ctx, out, provider{client, url})
	if err != nil {
		return err
	}
	if err := errors.Join(errors.Join(wrong...), s.check(ctx, out)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nEach payment is booked once, as it should be. The day took %d ms.\n", time.Since(start).Milliseconds())
	return err
}

// check prints the content of the database, and returns an error if it is wrong.
func (s *shop) check(ctx context.Context, out io.Writer) error {
	held, err := s.read(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nAt night the database holds:\n\n")
	held.print(out)
	return held.compare(atNight())
}

// playDay returns which answers were wrong, or why it could not go on.
func (s *shop) playDay(ctx context.Context, out io.Writer, p provider) (wrong []error, err error) {
	if _, err := s.pool.Exec(ctx, orders); err != nil {
		return nil, fmt.Errorf("putting the orders in: %w", err)
	}
	printRow(out, "FROM", "EVENT", "DELIVERED", "ANSWER AND OUTCOME")
	wrong, err = s.deliverAll(ctx, out, p, morning())
	if err != nil {
		return nil, err
	}
	if err := s.openDollars(ctx); err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	fmt.Fprintf(out, "\nAt noon the shop opens its ledger for USD. What failed is tried again: Z-2001 is booked.\n\n")
	more, err := s.deliverAll(ctx, out, p, afternoon())
	return append(wrong, more...), err
}

// openDollars opens the ledger, and has the workers try failed events now instead of
// a little later, as idem requeue does.
func (s *shop) openDollars(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, dollars); err != nil {
		return err
	}
	if _, err := s.zeltapay.Requeue(ctx, idem.Filter{States: []idem.State{idem.StatePending}}); err != nil {
		return err
	}
	_, err := s.outcomes.takeDone(ctx)
	return err
}

func (s *shop) deliverAll(ctx context.Context, out io.Writer, p provider, deliveries []delivery) (wrong []error, err error) {
	for _, d := range deliveries {
		statuses, err := p.deliver(ctx, d.message, d.times)
		if err != nil {
			return nil, err
		}
		became, err := s.outcomes.take(ctx)
		if err != nil {
			return nil, err
		}
		got := summary(statuses, became)
		printRow(out, d.from, d.event, d.about, got)
		if got != d.want {
			wrong = append(wrong, fmt.Errorf("%s (%s) was answered %q, should be %q", d.event, d.about, got, d.want))
		}
	}
	return wrong, nil
}

func printRow(out io.Writer, from, event, about, answer string) {
	fmt.Fprintf(out, "%-9s  %-24s  %-34s  %s\n", from, event, about, answer)
}
