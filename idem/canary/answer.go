package canary

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/paghooks/paghooks/idem"
)

// judge says what is wrong with an answer, and what to do.
func judge(status int, body []byte) error {
	var said struct {
		DryRun idem.Outcome `json:"dry_run"`
		Reason idem.Reason  `json:"reason"`
	}
	_ = json.Unmarshal(body, &said) // what does not fit stays empty
	dry := status == http.StatusServiceUnavailable
	switch {
	case dry && said.DryRun == idem.Done:
		return nil
	case dry && said.DryRun == idem.Retrying:
		return errors.New("the application was reached, and could not write to Postgres: see its log for the error of the dry run")
	case dry && said.DryRun == idem.Published:
		return errors.New("a Relay was reached, which has no Postgres to try: give the canary the address of a Processor or an Inbox")
	case dry && said.DryRun != "":
		return errors.New("the application was reached, and does not know canaries: let all of its processes run the same version of paghooks")
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")):
		return fmt.Errorf("it was answered with %d and a page of HTML: a proxy or another application stands at the address, correct that or the way to the receiver", status)
	case status/100 == 2:
		return fmt.Errorf("it was answered with %d, as a real event: the receiver does not know dry runs, or a proxy drops the header %s: have it pass", status, idem.DryRunHeader)
	case status/100 == 3:
		return fmt.Errorf("it was answered with the redirect %d, which providers do not follow: give the address that it leads to, here and at the provider", status)
	case said.Reason == idem.ReasonNotConfigured:
		return errors.New("the application has no token or secret to verify with: set it, is the environment variable there?")
	case said.Reason != "":
		return fmt.Errorf("the application refused it with %d (%s): give the canary the token or secret that the application verifies with, "+
			"and let the application take events from this machine's address and time", status, printableReason(said.Reason))
	}
	return fmt.Errorf("it was answered with %d, as no receiver of paghooks does: see the application's log and routes, and the proxies before it", status)
}

// printableReason is a reason that is one: whoever answers could send anything.
func printableReason(r idem.Reason) idem.Reason {
	strange := func(c rune) bool { return (c < 'a' || c > 'z') && c != '_' }
	if len(r) > 40 || strings.ContainsFunc(string(r), strange) {
		return "for a reason that is none of paghooks's"
	}
	return r
}
