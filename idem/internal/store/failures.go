package store

import "time"

// Failure is an attempt at an event that failed.
type Failure struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"` // its first 300 characters
}

// failure is an attempt that fails now, as one element of idem_payloads.failures.
func failure(lastError string) string {
	return `jsonb_build_array(jsonb_build_object('at', clock_timestamp(), 'error', left(` + lastError + `::text, 300)))`
}

// failuresAnd is the failures of the row p of idem_payloads, the last five, when an attempt
// fails now with an error; as they are if that is null.
func failuresAnd(lastError string) string {
	return `case
	when ` + lastError + `::text is null then p.failures
	when jsonb_array_length(p.failures) >= 5 then p.failures - 0 || ` + failure(lastError) + `
	else coalesce(p.failures, '[]') || ` + failure(lastError) + ` end`
}
