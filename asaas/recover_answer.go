package asaas

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/paghooks/paghooks/idem"
)

// judgeDryRun reads the answer to a dry run. An event that is not handled, and need not be, is
// no error. from names the address that the dry run came from.
func judgeDryRun(a answered, token, from string) (idem.Outcome, error) {
	var said struct {
		DryRun idem.Outcome `json:"dry_run"`
		Reason idem.Reason  `json:"reason"`
	}
	_ = json.Unmarshal(a.body, &said) // a field that does not fit stays empty
	if said.DryRun != "" && a.status == http.StatusServiceUnavailable {
		return said.DryRun, wrongWith(said.DryRun)
	}
	switch {
	case a.isHTML():
		return "", fmt.Errorf("it was answered with %d and a page of HTML: a proxy or another application stands at the webhook's URL; correct the URL, or the way to the receiver", a.status)
	case a.status/100 == 2:
		return "", fmt.Errorf("it was answered with %d, as a real event: it may have been processed, look for the ids evt_dry_run_… and %s in the application's data. "+
			"The receiver does not know dry runs, or a proxy drops the header %s", a.status, dryRunCharge, idem.DryRunHeader)
	case a.status/100 == 3:
		return "", fmt.Errorf("it was answered with the redirect %d, which Asaas does not follow: set the webhook's URL to where it leads", a.status)
	case said.Reason != "":
		return "", refusedFor(a.status, said.Reason, token, from)
	}
	return "", unexpected(a.status)
}

// wrongWith returns an error for the outcome of a dry run that should not be.
func wrongWith(o idem.Outcome) error {
	switch o {
	case idem.Done, idem.Unhandled, idem.Ignored:
		return nil
	case idem.Parked:
		return errors.New("the event does not decode in the application: let it run the same version of paghooks")
	case idem.Retrying:
		return errors.New("the handler failed, or its database: the application's log has the error of the dry run. " +
			"If it failed only because the charge or the like does not exist, let it do without in a dry run")
	case idem.Published:
		return errors.New("a Relay answers at the webhook's URL, and has no handlers to try: see that its consumers work, then remove the penalty with Client.RemoveBackoff")
	}
	return errors.New("the receiver is newer than this program, which does not know its answer: use the same version of paghooks")
}

// refusedFor returns the remedy for a receiver that refuses the delivery.
func refusedFor(status int, reason idem.Reason, token, from string) error {
	advice := "see the application's log"
	switch reason {
	case ReasonNotConfigured:
		advice = "the application has no token to verify with, set it there"
	case ReasonWrongToken, ReasonMissingToken, ReasonSeveralTokens, ReasonAmbiguousToken:
		advice = "give the token that the application verifies with, and see that the webhook has the same at Asaas"
	case ReasonUnknownAccount:
		advice = "the application knows no account at this URL"
	case ReasonAddressNotAllowed:
		advice = "the application takes events from Asaas's addresses only: let it take those of this machine" + from + " as long as this runs"
	}
	return fmt.Errorf("the application refused it with %d (%s): %s", status, clean(string(reason), []string{token}), advice)
}

// unexpected returns the remedy for an answer that has nothing but its status.
func unexpected(status int) error {
	advice := "no receiver of paghooks answers so: see the application, and the proxies before it"
	switch status {
	case http.StatusUnauthorized:
		advice = "the token is not taken: give the one that the application verifies with"
	case http.StatusForbidden:
		advice = "a firewall or a proxy refuses it: see whether it lets Asaas through"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		advice = "nothing takes events there: compare the webhook's URL with the application's routes"
	case http.StatusServiceUnavailable:
		advice = "the application takes no events now: see its log"
	}
	return fmt.Errorf("it was answered with %d: %s", status, advice)
}
