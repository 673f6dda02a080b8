package asaastest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
)

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

// noContent is the result of a call that answers 204.
type noContent struct{}

func respond(w http.ResponseWriter, result any, err error) {
	status := http.StatusOK
	if refusal, ok := errors.AsType[*refusal](err); ok {
		status, result = refusal.status, refusal
	}
	if _, ok := result.(noContent); ok {
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
