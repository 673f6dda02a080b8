package asaastest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
)

// APIFault answers a request instead of the API, or changes the answer of the API,
// which is the handler api. Write your own, or use one of this package: [APIStatus],
// [APIPage], [APICutJSON], [APIReset], [APILostAnswer], [APISilence] and [APIForbidden].
type APIFault func(w http.ResponseWriter, r *http.Request, api http.Handler)

// APIStatus answers with a status and an error in Asaas's form. Nothing is done.
func APIStatus(status int) APIFault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		respond(w, nil, refused(status, "unknown_error", "Ocorreu um erro inesperado."))
	}
}

// APIPage answers with a status and a page of HTML, like a proxy in front of
// an API. Nothing is done.
func APIPage(status int) APIFault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<html><head><title>%d %[2]s</title></head><body><h1>%[2]s</h1></body></html>\n", status, http.StatusText(status))
	}
}

// APICutJSON executes the request, and answers with half of the JSON.
func APICutJSON(w http.ResponseWriter, r *http.Request, api http.Handler) {
	whole := httptest.NewRecorder()
	api.ServeHTTP(whole, r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(whole.Code)
	_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
}

// APIReset resets the connection without an answer. Nothing is done.
func APIReset(w http.ResponseWriter, _ *http.Request, _ http.Handler) { reset(w) }

func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a reset instead of an orderly end
	}
	_ = conn.Close()
}

// APILostAnswer executes the request, and resets the connection without an answer.
func APILostAnswer(w http.ResponseWriter, r *http.Request, api http.Handler) {
	api.ServeHTTP(httptest.NewRecorder(), r)
	reset(w)
}

// APISilence does not answer until the client gives up, or the fake is closed.
// Nothing is done.
func APISilence(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	_, _ = io.Copy(io.Discard, r.Body) // only then net/http sees that the client gave up
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// APIForbidden says that the API key lacks the permission. Nothing is done.
func APIForbidden(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	respond(w, nil, refused(http.StatusForbidden, "insufficient_permission", "A chave de API não tem a permissão necessária para esta ação."))
}
