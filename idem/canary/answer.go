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

// outcomeOf returns the outcome of a dry run. An answer of anything but a dry run is an error, which
// names the fault and the remedy.
func outcomeOf(status int, body []byte) (idem.Outcome, error) {
	var said struct {
		DryRun idem.Outcome `json:"dry_run"`
		Reason idem.Reason  `json:"reason"`
	}
	_ = json.Unmarshal(body, &said) // a field that does not fit stays empty
	switch {
	case status == http.StatusServiceUnavailable && said.DryRun != "":
		return said.DryRun, nil
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")):
		return "", fmt.Errorf("it was answered with %d and a page of HTML: a proxy or another application stands at the address, correct that or the way to the receiver", status)
	case status/100 == 2:
		return "", fmt.Errorf("it was answered with %d, as a real event: the receiver does not know dry runs, or a proxy drops the header %s: have it pass", status, idem.DryRunHeader)
	case status/100 == 3:
		return "", fmt.Errorf("it was answered with the redirect %d, which providers do not follow: give the address that it leads to, here and at the provider", status)
	case said.Reason == idem.ReasonNotConfigured:
		return "", errors.New("the application has no token or secret to verify with: set it, is the environment variable there?")
	case said.Reason != "":
		return "", fmt.Errorf("the application refused it with %d (%s): give the canary the token or secret that the application verifies with, "+
			"and let the application take events from this machine's address and time", status, printableReason(said.Reason))
	}
	return "", fmt.Errorf("it was answered with %d, as no receiver of paghooks does: see the application's log and routes, and the proxies before it", status)
}

// failureOf returns the fault that the outcome of a canary's dry run shows, or nil.
func failureOf(o idem.Outcome) error {
	switch o {
	case idem.Done:
		return nil
	case idem.Retrying:
		return errors.New("the application was reached, and could not write to Postgres, or to the broker of a relay: see its log for the error of the dry run")
	}
	return errors.New("the application was reached, and does not know canaries: let all of its processes run the same version of paghooks")
}

// printableReason returns a reason if it is one: any server could send anything.
func printableReason(r idem.Reason) idem.Reason {
	strange := func(c rune) bool { return (c < 'a' || c > 'z') && c != '_' }
	if len(r) > 40 || strings.ContainsFunc(string(r), strange) {
		return "for a reason that is none of paghooks's"
	}
	return r
}
