package console

import (
	"net/http"
	"strconv"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// rowKey returns the row key of an event.
func rowKey(source, account, id string) string {
	return store.Event{Source: source, Scope: account, ID: id}.RowKey()
}

func id(value string) (int64, error) {
	if value == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(value, 10, 63)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "This link is broken: begin at the first page.")
	}
	return n, nil
}
