package asaas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// maxAnswer is the number of bytes of an answer that are read. A page of 100 charges
// has some 300 kB; long descriptions, splits and refunds make it several times that.
const maxAnswer = 8 << 20

// answered is an answer, as far as it could be read.
type answered struct {
	status int
	header http.Header
	body   []byte
	err    error // why the body is not whole
}

// decode reads the answer of a success.
func (a answered) decode(into any) error {
	switch {
	case into == nil && a.status == http.StatusNoContent:
		return nil
	case a.err != nil:
		return fmt.Errorf("the answer could not be read: %w", a.err)
	case a.isHTML():
		return errHTML
	case into == nil:
		return errors.New("there is an answer where Asaas gives none")
	case len(a.body) == 0:
		return errors.New("the answer is empty")
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("the answer is not the JSON that it should be: %w", err)
	}
	if checked, ok := into.(interface{ check() error }); ok {
		return checked.check()
	}
	return nil
}

var errHTML = errors.New("the answer is HTML, not Asaas's: a proxy or a wrong host gave it, see the API's address and the proxies before it")

// isHTML reports whether the answer is a page for people.
func (a answered) isHTML() bool { return bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("<")) }

// details returns Asaas's texts about a request that it declines; nil if the answer
// does not say it in Asaas's way.
func (a answered) details() []ErrorDetail {
	var answer ErrorAnswer
	if a.err != nil || json.Unmarshal(a.body, &answer) != nil {
		return nil
	}
	return answer.Errors.Or(nil)
}

// transportError returns the error, without the method and the URL that
// net/http puts before it.
func transportError(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}
