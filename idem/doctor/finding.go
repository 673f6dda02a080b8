package doctor

// Severity ranks a finding.
type Severity string

const (
	Error   Severity = "error"   // events are lost, doubled or stuck, or will be
	Warning Severity = "warning" // somebody should look at it soon
	Info    Severity = "info"    // good to know, or not visible to the role
)

// Finding is something that is wrong, or worth knowing.
type Finding struct {
	Check    string   `json:"check"` // the name of the check that found it: "migrations", "old snapshots"
	Severity Severity `json:"severity"`
	Source   string   `json:"source,omitempty"` // the source of its events; "" for the database
	Problem  string   `json:"problem"`
	Evidence string   `json:"evidence"` // the measured values
	Remedy   string   `json:"remedy"`   // the steps to take; "" for none
}

// String returns the finding in one line.
func (f Finding) String() string {
	text := string(f.Severity) + ": " + f.Problem
	if f.Evidence != "" {
		text += " (" + f.Evidence + ")"
	}
	if f.Remedy != "" {
		text += ": " + f.Remedy
	}
	return text
}
