package zeltapaytest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/paghooks/paghooks/zeltapay"
)

// Client returns a client of this fake's API, without a socket.
func (f *Fake) Client() *zeltapay.Client {
	client, err := zeltapay.NewClient("any-key")
	if err != nil {
		panic("zeltapaytest: " + err.Error())
	}
	client.Transport = f.core.Receiver(f)
	return client
}

// ServeHTTP is as much of Zelta Pay's API as [zeltapay.Client] reads, with any key: the payment links of
// all payments that were emitted, whatever became of their events, the newest first. A link is in it
// once, with the amount of its first payment, in one of the two layouts or in both.
//
// See https://docs-pay.zelta.dev/api/payment-links/list.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch {
	case r.Method != http.MethodGet || r.URL.Path != "/v1/payment-links":
		answer(w, http.StatusNotFound, "success", false, "message", "the fake has GET /v1/payment-links")
	case r.Header.Get("X-API-Key") == "":
		answer(w, http.StatusUnauthorized, "success", false, "error", map[string]string{"code": "ERR_MISSING_API_KEY"})
	case query.Get("status") != "completed":
		answer(w, http.StatusBadRequest, "success", false, "message", "the fake knows status=completed")
	default:
		answer(w, http.StatusOK, "success", true, "data", map[string]any{"paymentLinks": f.page(number(query.Get("off"), 0), number(query.Get("lim"), 10))})
	}
}

func (f *Fake) page(offset, limit int) []zeltapay.Link {
	f.core.Lock()
	defer f.core.Unlock()
	newest := slices.Clone(f.links)
	slices.Reverse(newest)
	return newest[min(offset, len(newest)):min(offset+limit, len(newest))]
}

// complete has a payment's link be completed. The lock must be held.
func (f *Fake) complete(body []byte) {
	event, err := zeltapay.Parse(body)
	e, ok := event.(*zeltapay.PaymentEvent)
	if err != nil || !ok || e.LinkID() == "" {
		return
	}
	if slices.ContainsFunc(f.links, func(l zeltapay.Link) bool { return l.ID == e.LinkID() }) {
		return
	}
	amount, _ := e.Amount()
	f.links = append(f.links, zeltapay.Link{
		ID: e.LinkID(), Status: "completed", Amount: amount, Metadata: e.LinkMetadata(), CompletedAt: e.PaidAt(), IsTest: e.IsTest(),
	})
}

func number(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return n
	}
	return otherwise
}

func answer(w http.ResponseWriter, status int, members ...any) {
	object := make(map[string]any)
	for n := 0; n < len(members); n += 2 {
		object[members[n].(string)] = members[n+1]
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object) // the client may have gone
}
