package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestDayEndsAsItShould(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out, true); err != nil {
		t.Error(err)
	}
	said := strings.Join(strings.Fields(strings.ReplaceAll(out.String(), "\n", " | ")), " ")
	for _, line := range []string{
		"PAYMENT_RECEIVED A-1001, ten at once 10 x 200 paid 0.00 -> 149.90 |",
		"PAYMENT_RECEIVED A-1001, once more 200 none: done before |",
		"PAYMENT_CREATED A-1002, late and out of order 200 none |",
		"PAYMENT_RECEIVED A-1001, forged: a guessed token 401 refused |",
		"PAYMENT_BANK_SLIP_VIEWED of a type that is ignored 200 none: nothing is stored |",
		"At noon these are not done: | | SOURCE TYPE STATE LAST_ERROR | asaas TRANSFER_DONE unhandled | zeltapay payment.success pending its order is not stored | |",
		"payment.success Z-2001, in the other layout 200 none |",
		"payment.success Z-2002, ten at once 10 x 200 paid 0.00 -> 25.00 |",
		"PAYMENT_CHARGEBACK_REQUESTED A-1002, the customer disputes it 200 paid 1200.00 -> 0.00 |",
		"PAYMENT_RECEIVED A-1005, before its order is stored 200 parked: no order was set... |",
		"| A-1001 149.90 149.90 BRL | A-1002 1200.00 0.00 BRL | A-1003 59.90 39.90 BRL | A-1004 75.50 0.00 BRL | A-1005 30.00 0.00 BRL | Z-2001 49.00 49.00 USD | Z-2002 25.00 25.00 USD |",
		"29.90 | | The events: | | SOURCE STATE EVENTS | asaas done 10 | asaas parked 1 | asaas unhandled 1 | zeltapay done 3 |",
	} {
		if !strings.Contains(said, line) {
			t.Errorf("the output lacks\n%s", line)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestItStaysWithAPageThatShowsTheParkedEvent(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, in, false)
		ended <- errors.Join(err, in.Close())
	}()
	page := ""
	for lines := bufio.NewScanner(out); page == "" && lines.Scan(); {
		if _, address, ok := strings.Cut(lines.Text(), "have the event run again:"); ok {
			page = strings.TrimSpace(address)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if page == "" {
		t.Fatalf("it stays nowhere: %v", <-ended)
	}
	get := func(path string) string {
		answer, err := http.Get(page + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, answer.StatusCode, err)
		}
		return string(body)
	}
	if body := get("events?source=asaas&state=parked"); !strings.Contains(body, "A-1005") {
		t.Errorf("the parked event is not on the page:\n%s", body)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
