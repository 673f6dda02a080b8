package zeltapaytest

import (
	"io"
	"net/http"
)

// maxAnswer is the number of bytes of an answer that are kept.
const maxAnswer = 4096

// answer is a receiver's; or the error instead of one, or of one that does not count.
type answer struct {
	status int
	body   string
	err    error
}

func (a answer) entry(k Kind, fault Fault) Entry {
	e := Entry{Kind: k, Status: a.status, Answer: a.body, Fault: fault}
	if a.err != nil {
		e.Error = a.err.Error()
	}
	return e
}

func answered(response *http.Response) answer {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // the status has come, which counts
	return answer{status: response.StatusCode, body: string(body)}
}
