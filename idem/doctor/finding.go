package doctor

// Severity is how bad a finding is.
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
	Source   string   `json:"source,omitempty"` // whose events it is about; "" for the database
	Problem  string   `json:"problem"`
	Evidence string   `json:"evidence"` // what was measured
	Remedy   string   `json:"remedy"`   // what to do; "" for nothing
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
