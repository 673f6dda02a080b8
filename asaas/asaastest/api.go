package asaastest

import (
	"net/http"
	"strings"
)

// ServeHTTP is Asaas's API for webhooks, at the paths /v3/webhooks…, and as much of
// that for charges as Reconcile of package charges reads: /v3/payments, with the charges of all
// events that were emitted, and the statement /v3/financialTransactions.
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

func (f *Fake) newRoutes() *http.ServeMux {
	routes := http.NewServeMux()
	for pattern, handle := range map[string]func(*http.Request) (any, error){
		"GET /v3/webhooks":                     f.listWebhooks,
		"POST /v3/webhooks":                    f.createWebhook,
		"GET /v3/webhooks/{id}":                f.getWebhook,
		"PUT /v3/webhooks/{id}":                f.updateWebhook,
		"DELETE /v3/webhooks/{id}":             f.deleteWebhook,
		"POST /v3/webhooks/{id}/removeBackoff": f.relieveWebhook,
		"GET /v3/payments":                     f.listCharges,
		"GET /v3/payments/{id}":                f.getCharge,
		"GET /v3/financialTransactions":        f.listTransactions,
	} {
		routes.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			result, err := handle(r)
			respond(w, result, err)
		})
	}
	return routes
}

func (f *Fake) api(w http.ResponseWriter, r *http.Request) {
	if err := f.admit(r); err != nil {
		respond(w, nil, err)
		return
	}
	_, pattern := f.routes.Handler(r)
	if err := f.spend(w.Header(), strings.HasSuffix(pattern, "/removeBackoff")); err != nil {
		respond(w, nil, err)
		return
	}
	f.routes.ServeHTTP(w, r)
}

// spend counts a request under the account's limit, and under that of removeBackoff.
func (f *Fake) spend(h http.Header, removeBackoff bool) error {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	err := f.limits.spend(h, "account", f.Limit, f.now)
	if removeBackoff && err == nil {
		err = f.limits.spend(h, "removeBackoff", f.RemoveBackoffLimit, f.now)
	}
	return err
}

// admit refuses the requests that Asaas refuses on every path.
func (f *Fake) admit(r *http.Request) error {
	key := r.Header.Get("access_token")
	isKey := strings.HasPrefix(key, "$aact_hmlg_") || isProduction(key)
	switch {
	case r.UserAgent() == "":
		return refused(http.StatusBadRequest, "user_agent_not_found", "O cabeçalho User-Agent é obrigatório.")
	case r.Method == http.MethodGet && r.ContentLength != 0:
		return refused(http.StatusForbidden, "forbidden", "Requisições GET não podem ter corpo.")
	case key == "":
		return refused(http.StatusUnauthorized, "access_token_not_found", "O cabeçalho access_token não foi enviado.")
	case !isKey:
		return refused(http.StatusUnauthorized, "invalid_access_token_format", "A chave de API não tem o formato esperado.")
	case isProduction(key) != isProduction(f.APIKey):
		return refused(http.StatusUnauthorized, "invalid_environment", "A chave de API não pertence a este ambiente.")
	case key != f.APIKey:
		return refused(http.StatusUnauthorized, "invalid_access_token", "A chave de API é inválida.")
	}
	return nil
}

func isProduction(key string) bool { return strings.HasPrefix(key, "$aact_prod_") }
