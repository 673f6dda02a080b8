package idem

// WarnOfScopes is what Serve does at its start.
var WarnOfScopes = warnOfScopes
