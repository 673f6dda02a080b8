package asaas

import (
	"fmt"
	"strings"
	"time"
)

// ReconcileStep is a step of [Reconcile].
type ReconcileStep string

const (
	// The queue is stopped or penalized, so that nothing was compared: get it going
	// with [Recover] first. The last.
	ReconcileHeldUp ReconcileStep = "held up"
	// A charge of which an event is missing, or of which the application says
	// otherwise than Asaas. It is in Difference.
	ReconcileDifference ReconcileStep = "difference"
	// All charges before Cursor are compared.
	ReconcileCompared ReconcileStep = "compared"
	// The run has made its calls, or Asaas wants a pause, for the time in Again if
	// that is known: go on with Cursor. The last.
	ReconcilePaused ReconcileStep = "paused"
	// Everything is compared. The last.
	ReconcileDone ReconcileStep = "done"
)

// ReconcileProgress is a step of [Reconcile].
type ReconcileProgress struct {
	Step       ReconcileStep
	Difference *Difference     // of ReconcileDifference
	Counts     ReconcileCounts // of this run, until now
	Cursor     ReconcileCursor // to resume at
	Scan       string          // the scan at the Cursor: created, paid, confirmed, a status, statement, open
	Again      time.Duration   // of ReconcilePaused: how long Asaas wants to be left alone; 0 if it does not say
}

// ReconcileCounts are the sums of a run of [Reconcile].
type ReconcileCounts struct {
	Calls       int `json:"calls"`       // of the API
	Charges     int `json:"charges"`     // that were compared
	Differences int `json:"differences"` // that were reported
	Recent      int `json:"recent"`      // charges that were not judged, because of Grace
}

// Difference is a charge of which the application may not know the truth.
type Difference struct {
	Charge string `json:"charge"` // its id
	State  string `json:"state"`  // Asaas's status now; see StateOf

	Missing  []EventType `json:"missing,omitempty"`   // must have come, and are not stored
	NotKnown []EventType `json:"not_known,omitempty"` // must have come, and are older than Retention
	Waiting  []EventType `json:"waiting,omitempty"`   // are stored, and not done: parked, pending and the like
	Handled  []EventType `json:"handled,omitempty"`   // are done
	Since    Date        `json:"since,omitempty"`     // the day of the first that is missing or not known; "" if Asaas does not tell

	Known       *bool  `json:"known,omitempty"`       // whether the application knows the charge; nil if it was not asked
	Application string `json:"application,omitempty"` // the state that the application says

	Value             Money       `json:"value,omitzero"` // 0, and absent in JSON, if Asaas does not have the charge
	BillingType       BillingType `json:"billing_type,omitempty"`
	ExternalReference string      `json:"external_reference,omitempty"`
	FoundBy           string      `json:"found_by"` // the Scan

	// Payment is the charge as Asaas shows it. Of one that Asaas does not have any
	// more it is the id, and Deleted. It can hold personal data.
	Payment *Payment `json:"-"`

	since time.Time
}

// String is a line for people: "pay_1 is RECEIVED since 2026-08-10: missing
// PAYMENT_RECEIVED".
func (d *Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s", d.Charge, d.State)
	for _, list := range []struct {
		name  string
		types []EventType
	}{{"missing", d.Missing}, {"not known", d.NotKnown}, {"waiting", d.Waiting}} {
		if len(list.types) > 0 {
			fmt.Fprintf(&b, "; %s:", list.name)
			for _, t := range list.types {
				b.WriteString(" " + string(t))
			}
		}
	}
	if d.Since != "" {
		b.WriteString(" since " + string(d.Since))
	}
	switch {
	case d.Known == nil:
	case !*d.Known:
		b.WriteString("; the application does not know the charge")
	case d.Application != "":
		b.WriteString("; the application says " + d.Application)
	}
	return strings.Map(printable, b.String())
}

// String is a line for people.
func (p ReconcileProgress) String() string {
	switch p.Step {
	case ReconcileHeldUp:
		return "the queue is stopped or penalized, and nothing was compared: events may come; recover it first"
	case ReconcileDifference:
		return p.Difference.String()
	case ReconcileCompared:
		return fmt.Sprintf("%d charges compared with %d calls, next: %s", p.Counts.Charges, p.Counts.Calls, p.Scan)
	case ReconcilePaused:
		again := "later"
		if p.Again > 0 {
			again = "in " + wholeSeconds(p.Again)
		}
		return fmt.Sprintf("paused after %d calls, %d charges compared: resume %s at the cursor", p.Counts.Calls, p.Counts.Charges, again)
	case ReconcileDone:
		return fmt.Sprintf("done: %d charges compared with %d calls, %d differ, %d may have events on the way",
			p.Counts.Charges, p.Counts.Calls, p.Counts.Differences, p.Counts.Recent)
	}
	return string(p.Step)
}

// ReconcileCursor is a place in a run of [Reconcile]. It can be stored as JSON.
type ReconcileCursor struct {
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Scan   int       `json:"scan"`
	Offset int       `json:"offset"`
	After  string    `json:"after,omitempty"` // an id
}
