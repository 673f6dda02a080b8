package asaastest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// Transport takes requests to this fake's API without a socket, whichever host
// they name: for an [asaas.Client] with Asaas's own base URL, and in a synctest
// bubble.
func (f *Fake) Transport() http.RoundTripper { return f.core.Receiver(f) }

// Client returns a client of this fake's API, in the fake's time: where the
// client waits, the clock moves on by [Fake.Advance]. So [asaas.Recover] takes
// minutes of the fake's and none of the test's, and needs nothing else:
//
//	for progress, err := range asaas.Recover(ctx, fake.Client(), webhook, token, nil) { … }
//
// It panics for an APIKey that is none.
func (f *Fake) Client() *asaas.Client { return f.ClientOf(f.APIKey) }

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
	var handler http.Handler
	w.fake.core.Lock()
	for _, webhook := range w.fake.webhooks {
		if webhook.URL == r.URL.String() {
			handler = webhook.Handler
			break
		}
	}
	w.fake.core.Unlock()
	return w.fake.core.Receiver(handler).RoundTrip(r)
}

// ServeHTTP is Asaas's API for webhooks, at the paths /v3/webhooks…, and as much of
// that for charges as Reconcile of package charges reads: /v3/payments, with the charges of all
// events that were emitted, their chargebacks at /v3/chargebacks/, the statement of their money, fees, splits and
// anticipations at /v3/financialTransactions, and the account's id, which is that of the newest event, at
// /v3/myAccount/status. POST /v3/payments makes a charge and emits its PAYMENT_CREATED, and POST /v3/accounts adds an
// [Account]. The key says of which account all of that is.
//
// See https://docs.asaas.com/docs/create-new-webhook-via-api.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	if fault := f.apiFaults.Next(); fault != nil {
		fault(w, r, http.HandlerFunc(f.api))
		return
	}
	f.api(w, r)
}

// newRoutes has each request handled with the lock held.
func (f *Fake) newRoutes() *http.ServeMux {
	routes := http.NewServeMux()
	for pattern, handle := range map[string]func(*account, *http.Request) (any, error){
		"GET /v3/accounts":                     f.listAccounts,
		"POST /v3/accounts":                    f.createAccount,
		"GET /v3/webhooks":                     f.listWebhooks,
		"POST /v3/webhooks":                    f.createWebhook,
		"GET /v3/webhooks/{id}":                f.getWebhook,
		"PUT /v3/webhooks/{id}":                f.updateWebhook,
		"DELETE /v3/webhooks/{id}":             f.deleteWebhook,
		"POST /v3/webhooks/{id}/removeBackoff": f.relieveWebhook,
		"GET /v3/payments":                     f.listCharges,
		"POST /v3/payments":                    f.createCharge,
		"GET /v3/payments/{id}":                f.getCharge,
		"GET /v3/customers/{id}":               f.getCustomer,
		"GET /v3/financialTransactions":        f.listTransactions,
		"GET /v3/chargebacks/{$}":              f.listChargebacks,
		"GET /v3/myAccount/status":             f.getAccountStatus,
	} {
		routes.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // of which a part is no JSON
			r.Body = io.NopCloser(bytes.NewReader(body))
			var result any
			var err error
			f.core.Change(func() { result, err = handle(f.keyed(r.Header.Get("access_token")), r) })
			respond(w, result, err)
		})
	}
	return routes
}

func (f *Fake) api(w http.ResponseWriter, r *http.Request) {
	of, err := f.admit(r)
	if err != nil {
		respond(w, nil, err)
		return
	}
	_, pattern := f.routes.Handler(r)
	if err := f.spend(of, w.Header(), strings.HasSuffix(pattern, "/removeBackoff")); err != nil {
		respond(w, nil, err)
		return
	}
	f.routes.ServeHTTP(w, r)
}

// removeBackoffLimit bounds removeBackoff, besides. Asaas says that it is stricter, and no number.
var removeBackoffLimit = RateLimit{Requests: 5, Window: time.Minute}

// spend counts a request under the account's limit, and under that of removeBackoff.
func (f *Fake) spend(of *account, h http.Header, removeBackoff bool) error {
	f.core.Lock()
	defer f.core.Unlock()
	err := of.requests.spend(h, f.Limit, f.core.Time())
	if removeBackoff && err == nil {
		err = of.removals.spend(h, removeBackoffLimit, f.core.Time())
	}
	return err
}

// admit returns the account of a request's key. It refuses the requests that Asaas refuses on every path.
func (f *Fake) admit(r *http.Request) (*account, error) {
	key := r.Header.Get("access_token")
	f.core.Lock()
	of := f.keyed(key)
	f.core.Unlock()
	isKey := strings.HasPrefix(key, "$aact_hmlg_") || isProduction(key)
	switch {
	case r.UserAgent() == "":
		return nil, refused(http.StatusBadRequest, "user_agent_not_found", "O cabeçalho User-Agent é obrigatório.")
	case r.Method == http.MethodGet && r.ContentLength != 0:
		return nil, refused(http.StatusForbidden, "forbidden", "Requisições GET não podem ter corpo.")
	case key == "":
		return nil, refused(http.StatusUnauthorized, "access_token_not_found", "O cabeçalho access_token não foi enviado.")
	case !isKey:
		return nil, refused(http.StatusUnauthorized, "invalid_access_token_format", "A chave de API não tem o formato esperado.")
	case isProduction(key) != isProduction(f.APIKey):
		return nil, refused(http.StatusUnauthorized, "invalid_environment", "A chave de API não pertence a este ambiente.")
	case of == nil:
		return nil, refused(http.StatusUnauthorized, "invalid_access_token", "A chave de API é inválida.")
	}
	return of, nil
}

func isProduction(key string) bool { return strings.HasPrefix(key, "$aact_prod_") }

// RateLimit is the number of requests that the API takes in a time that begins with the
// first of them.
type RateLimit struct {
	Requests int
	Window   time.Duration
}

// window counts the requests under a limit.
type window struct {
	end  time.Time
	used int
}

// spend counts a request, and announces the rest in the headers
// RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset (seconds).
func (w *window) spend(h http.Header, limit RateLimit, now time.Time) error {
	if !now.Before(w.end) {
		*w = window{end: now.Add(limit.Window)}
	}
	w.used++
	h.Set("RateLimit-Limit", strconv.Itoa(limit.Requests))
	h.Set("RateLimit-Remaining", strconv.Itoa(max(limit.Requests-w.used, 0)))
	h.Set("RateLimit-Reset", strconv.Itoa(int((w.end.Sub(now)+time.Second-1)/time.Second)))
	if w.used > limit.Requests {
		return errTooMany
	}
	return nil
}

var errTooMany = refused(http.StatusTooManyRequests, "too_many_requests", "O limite de requisições foi excedido. Tente novamente mais tarde.")

// refusal is an error in Asaas's form.
type refusal struct {
	status int
	Errors []problem `json:"errors"`
}

type problem struct {
	Code        string `json:"code"`
	Description string `json:"description"`
}

func (r *refusal) Error() string { return r.Errors[0].Code }

func refused(status int, code, description string) error {
	return &refusal{status, []problem{{code, description}}}
}

// respond answers 204 to a call without a result.
func respond(w http.ResponseWriter, result any, err error) {
	status := http.StatusOK
	if refusal, ok := errors.AsType[*refusal](err); ok {
		status, result = refusal.status, refusal
	}
	if result == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	body, _ := json.Marshal(result) // plain structs
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have gone
}

// decode reads a JSON body; an empty one is an empty object.
func decode(r *http.Request, into any) error {
	err := json.NewDecoder(r.Body).Decode(into)
	if err != nil && err != io.EOF {
		return refused(http.StatusBadRequest, "invalid_json", "O corpo da requisição não é um JSON válido.")
	}
	return nil
}

// page is a page of a list.
type page[T any] struct {
	Object     string `json:"object"`
	HasMore    bool   `json:"hasMore"`
	TotalCount int    `json:"totalCount"`
	Limit      int    `json:"limit"`
	Offset     int    `json:"offset"`
	Data       []T    `json:"data"`
}

func pageOf[T any](r *http.Request, all []T) (any, error) {
	offset, err1 := number(r, "offset", 0, 0, 1<<31-1)
	limit, err2 := number(r, "limit", 10, 1, 100)
	if err1 != nil || err2 != nil {
		return nil, refused(http.StatusBadRequest, "invalid_pagination", "Informe offset a partir de 0 e limit entre 1 e 100.")
	}
	end := min(offset+limit, len(all))
	return page[T]{"list", end < len(all), len(all), limit, offset, append([]T{}, all[min(offset, end):end]...)}, nil
}

// number reads a parameter of a query.
func number(r *http.Request, name string, fallback, lowest, highest int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	if err == nil && (n < lowest || n > highest) {
		err = strconv.ErrRange
	}
	return n, err
}
