package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// eventName is an event by its account and id.
type eventName struct{ Account, ID string }

// rowKey returns the key that [named] reads.
func rowKey(source, account, id string) string {
	return source + "/" + url.PathEscape(account) + "/" + id
}

// named reads source/scope/id, where the scope is escaped.
func named(key string) eventName {
	_, rest, _ := strings.Cut(key, "/")
	scope, id, _ := strings.Cut(rest, "/")
	account, err := url.PathUnescape(scope)
	if err != nil {
		account = scope
	}
	return eventName{account, id}
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
